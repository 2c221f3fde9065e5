import "reflect-metadata";
import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Controller, Get, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, it } from "vitest";
import { type CurfewServer, createServer } from "../../src/server/app.ts";
import { nodeListener } from "../../src/server/http/node-listener.ts";
import { openTestEngine } from "../../src/testing/test-engine.ts";
import { seed } from "./seed.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { moveTime, openPage, settled } from "./stage.ts";

const BASE = "/admin/jobs";

/** An application with a login of its own and a page of its own, around the dashboard. */
interface App {
  readonly url: string;
  close(): Promise<unknown>;
}

const isKnown = (cookie: string | undefined) => cookie?.includes("app=ana") ?? false;

async function inExpress(server: CurfewServer): Promise<App> {
  const app = express();
  app.use((request, _response, next) => {
    if (isKnown(request.headers.cookie)) Object.assign(request, { user: "ana" });
    next();
  });
  app.use(BASE, nodeListener(server));
  app.use(express.json());
  app.get("/own", (_request, response) => void response.send("the application's own page"));
  return listening(app);
}

async function listening(listener: RequestListener): Promise<App> {
  const http = createHttp(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => http.once("listening", resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        http.close(resolve);
        http.closeAllConnections();
      }),
  };
}

async function inKoa(server: CurfewServer): Promise<App> {
  const app = new Koa();
  const listener = nodeListener(server);
  app.use((context, next) => {
    if (isKnown(context.get("cookie"))) Object.assign(context.req, { user: "ana" });
    if (!context.path.startsWith(`${BASE}/`)) return next();
    context.respond = false;
    listener(context.req, context.res);
    return undefined;
  });
  app.use((context) => {
    if (context.path === "/own") context.body = "the application's own page";
  });
  return listening(app.callback());
}

class OwnPages {
  own() {
    return "the application's own page";
  }
}
Get("own")(OwnPages.prototype, "own", Object.getOwnPropertyDescriptor(OwnPages.prototype, "own") as never);
Controller()(OwnPages);

class AppModule {}
Module({ controllers: [OwnPages] })(AppModule);

/** Nest adds its body parsers when it starts to listen, behind what the application uses before. */
async function inNest(server: CurfewServer): Promise<App> {
  const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true });
  app.use((request: IncomingMessage, _response: unknown, next: () => void) => {
    if (isKnown(request.headers.cookie)) Object.assign(request, { user: "ana" });
    next();
  });
  app.use(BASE, nodeListener(server));
  await app.listen(0, "127.0.0.1");
  return { url: (await app.getUrl()).replace("localhost", "127.0.0.1"), close: () => app.close() };
}

async function inFastify(server: CurfewServer): Promise<App> {
  const app = fastify({ forceCloseConnections: true });
  const listener = nodeListener(server);
  await app.register(async (mounted) => {
    // The dashboard's server reads bodies itself, within its limits.
    mounted.removeAllContentTypeParsers();
    mounted.addContentTypeParser("*", (_request, _body, done) => done(null));
    mounted.all(`${BASE}/*`, (request, reply) => {
      if (isKnown(request.headers.cookie)) Object.assign(request.raw, { user: "ana" });
      reply.hijack();
      listener(request.raw, reply.raw);
    });
  });
  app.get("/own", () => "the application's own page");
  return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
}

async function inHono(server: CurfewServer): Promise<App> {
  const app = new Hono<{ Bindings: { incoming: IncomingMessage } }>();
  app.all(`${BASE}/*`, (c) => {
    if (isKnown(c.req.header("cookie"))) Object.assign(c.env.incoming, { user: "ana" });
    return server.fetch(c.req.raw, c.env as never);
  });
  app.get("/own", (c) => c.text("the application's own page"));
  return new Promise((resolve) => {
    const http = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () =>
          new Promise((done) => {
            http.close(done);
            if ("closeAllConnections" in http) http.closeAllConnections();
          }),
      }),
    );
  });
}

describe.skipIf(!hasBrowser)("a dashboard inside of an application", () => {
  it.each([
    ["Express", inExpress],
    ["Fastify", inFastify],
    ["Hono", inHono],
    ["Koa", inKoa],
    ["NestJS", inNest],
  ])("is live and acts under a path of %s, by its login", async (_name, mount) => {
    await using browser = await openBrowser();
    const test = await openTestEngine({ startAt: "2026-11-02T14:30:00Z" });
    const server = createServer(test.engine, {
      dashboard: { base: BASE },
      authorize: ({ incoming }) =>
        (incoming as { readonly user?: string } | undefined)?.user === "ana"
          ? { name: "ana", role: "admin" }
          : null,
    });
    const seeded = await seed(test);
    const app = await mount(server);
    const time = moveTime(test);
    try {
      expect((await fetch(`${app.url}${BASE}/ojs/v1/admin/jobs`)).status).toBe(401);
      await using opened = await openPage(browser, `${app.url}${BASE}/jobs/${seeded.deadLetter}`, {
        prepare: (context) => context.addCookies([{ name: "app", value: "ana", url: app.url }]),
      });
      const { page, problems } = opened;
      const outside: string[] = [];
      page.on("request", (request) => {
        const { pathname } = new URL(request.url());
        if (!pathname.startsWith(`${BASE}/`)) outside.push(pathname);
      });
      await settled(page);
      await page.getByText("Live", { exact: true }).waitFor();
      await page.keyboard.press("r");
      await page.getByLabel("Reason, for the audit").fill("mounted");
      await page.getByRole("button", { name: "Retry the job" }).click();
      await page.getByText("The job waits again.").waitFor();
      const { entries } = await test.engine.audit.read({ limit: 5 });
      expect(entries).toContainEqual(expect.objectContaining({ actor: "ana", reason: "mounted" }));
      await page.reload();
      await settled(page);
      expect(outside).toEqual([]);
      expect(problems).toEqual([]);
      expect(await (await fetch(`${app.url}/own`)).text()).toBe("the application's own page");
    } finally {
      await time.end();
      server.hangUp();
      await app.close();
      await server.close();
      await test.close();
    }
  });
});
