import { render } from "preact";
import { App } from "./app.tsx";
import { findPage } from "./pages.ts";
import { handleKey } from "./state/keys.ts";
import { followLinks, place } from "./state/router.ts";
import { whoAmI } from "./state/session.ts";
import "./state/theme.ts";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/shell.css";
import "./ui/data.css";
import "./ui/timeline.css";
import "./ui/narrow.css";
import "./ui/pages.css";
import "./ui/settings.css";

const root = document.getElementById("app");
if (!root) throw new Error("the page has no element with the id app");
document.addEventListener("click", followLinks);
document.addEventListener("keydown", handleKey);
render(<App />, root);
void whoAmI();
// The code of the page comes while the server is asked. Where it does not, the page says so once it is shown.
findPage(place.value.path)
  ?.entry.load()
  .catch(() => {});
