import { refuse } from "../core/errors.ts";
import type { CalendarsApi, WebhooksApi } from "../engine/curfew-api.ts";
import type { Caller } from "./caller.ts";

export function remoteWebhooks(caller: Caller): WebhooksApi {
  return {
    create: (options) => caller.call("webhooks.create", [options]),
    update: (id, options) => caller.call("webhooks.update", [id, options]),
    delete: (id) => caller.call("webhooks.delete", [id]),
    get: (id) => caller.call("webhooks.get", [id]),
    list: (page) => caller.call("webhooks.list", [page]),
    rotate: (id, options) => caller.call("webhooks.rotate", [id, options]),
    test: (id) => caller.call("webhooks.test", [id]),
    deliveries: (options) => caller.call("webhooks.deliveries", [options]),
    delivery: (id) => caller.call("webhooks.delivery", [id]),
    redeliver: (id) => caller.call("webhooks.redeliver", [id]),
  };
}

export function remoteCalendars(caller: Caller): CalendarsApi {
  return {
    async put(name, input) {
      if (typeof input?.days === "function")
        throw refuse(
          "invalid_option",
          "calendar.days",
          "a function",
          "send the list of days: a provider cannot be sent over HTTP",
        );
      return caller.call("calendars.put", [name, input]);
    },
    delete: (name) => caller.call("calendars.delete", [name]),
    get: (name) => caller.call("calendars.get", [name]),
    list: (page) => caller.call("calendars.list", [page]),
    explain: (when, options) => caller.call("calendars.explain", [when, options]),
  };
}
