import { render } from "preact";
import { App } from "./app.tsx";
import { handleKey } from "./state/keys.ts";
import { followLinks } from "./state/router.ts";
import { whoAmI } from "./state/session.ts";
import "./state/theme.ts";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/shell.css";
import "./ui/data.css";
import "./ui/timeline.css";
import "./ui/narrow.css";

const root = document.getElementById("app");
if (!root) throw new Error("the page has no element with the id app");
document.addEventListener("click", followLinks);
document.addEventListener("keydown", handleKey);
render(<App />, root);
void whoAmI();
