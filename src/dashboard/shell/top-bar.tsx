import { useEffect, useState } from "preact/hooks";
import { now } from "../state/clock.ts";
import { heardAt, liveState } from "../state/live.ts";
import { chooseTenant, listTenants, logOut, notice, visit } from "../state/session.ts";
import { nextTheme, theme } from "../state/theme.ts";
import { Button } from "../ui/button.tsx";
import { clockText, zoneName, zoneText } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { openedLayer } from "./shell-keys.tsx";

export function TopBar() {
  const open = () => {
    openedLayer.value = "palette";
  };
  return (
    <header class="top">
      <button class="search" type="button" onClick={open}>
        <Icon name="search" />
        <span>Find a job, a page or a command</span>
        <kbd>/</kbd>
        <kbd>Ctrl K</kbd>
      </button>
      <span class="push" />
      <Live />
      {notice() && (
        <span class="notice-label" title={notice()?.text}>
          {notice()?.label}
        </span>
      )}
      <span class="where" title="Times are in your zone. Hover over a time for UTC.">
        <Icon name="clock" small />
        {zoneName()}
        {zoneName() === "UTC" ? "" : `, ${zoneText(now.value)}`}
      </span>
      <span class="hide-s">
        <Button kind="ghost" icon="theme" label={`Theme: ${theme.value}`} onClick={nextTheme} />
      </span>
      <Who />
    </header>
  );
}

/** Whether what is shown is what is. */
function Live() {
  const at = heardAt.value;
  if (liveState.value === "live")
    return (
      <span class="live" title={at === null ? "" : `Last heard at ${clockText(at)}`}>
        Live
      </span>
    );
  const text =
    liveState.value === "connecting" || at === null ? "Connecting" : `Stale since ${clockText(at)}`;
  return (
    <span class="live stale" role="status">
      {text}
    </span>
  );
}

/** The tenant that the pages show, and the others that the viewer may choose. */
function TenantChoice() {
  const session = visit.value.state === "known" ? visit.value.session : null;
  const { tenant = null, tenants = [], can_log_out = false } = session ?? {};
  const [all, setAll] = useState<readonly string[]>([]);
  const isAny = tenants === "*" && can_log_out;
  useEffect(() => {
    if (!isAny) return;
    void listTenants().then(setAll);
  }, [isAny]);
  const names = tenants === "*" ? all : tenants;
  const offered = tenant === null || names.includes(tenant) ? names : [tenant, ...names];
  if (!can_log_out || offered.length < (isAny ? 1 : 2))
    return tenant === null ? null : (
      <span class="tag" title="These pages show this tenant and nothing else">
        {tenant}
      </span>
    );
  return (
    <select
      class="t"
      aria-label="Tenant"
      value={tenant ?? ""}
      onChange={(event) => void chooseTenant(event.currentTarget.value || null)}
    >
      {isAny && <option value="">no tenant</option>}
      {offered.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

function Who() {
  if (visit.value.state !== "known") return null;
  const { name, role, can_log_out } = visit.value.session;
  return (
    <span class="rowf hide-s">
      <TenantChoice />
      <span class="tag" title={`You are ${name}`}>
        {role}
      </span>
      {can_log_out && <Button kind="ghost" icon="out" label="Log out" onClick={() => void logOut()} />}
    </span>
  );
}
