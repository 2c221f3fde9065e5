import "reflect-metadata";
import { Inject, Injectable, Module, type OnModuleDestroy, Scope } from "@nestjs/common";
import { Test, type TestingModule } from "@nestjs/testing";
import { transform } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { AppModule } from "../../../examples/frameworks/nest/app.ts";
import { Mailer } from "../../../examples/frameworks/nest/mail.ts";
import { type AttemptContext, defineJob, defineSaga, type Engine, processor } from "../../../src/index.ts";
import {
  CurfewHealth,
  CurfewModule,
  type CurfewModuleOptions,
  CurfewWorkers,
  ENGINE,
  InjectEngine,
  InjectQueue,
  type JobQueue,
  Processor,
  queueToken,
} from "../../../src/nestjs/index.ts";
import { type NestTestOptions, openNestTest } from "../../../src/nestjs/testing.ts";
import { createLatch } from "../../../src/testing/index.ts";

const mail = defineJob({
  type: "mail.send",
  queue: "mail",
  payload: z.object({ to: z.string() }),
  result: z.object({ sent: z.string() }),
});
const tick = defineJob({ type: "tick" });

@Injectable()
class Postbox {
  readonly sent: string[] = [];
}

@Injectable()
class MailProcessor {
  readonly mailer: Postbox;
  constructor(mailer: Postbox) {
    this.mailer = mailer;
  }

  @Processor(mail)
  send({ payload }: AttemptContext<{ to: string }>) {
    this.mailer.sent.push(payload.to);
    return { sent: payload.to };
  }
}

@Injectable()
class Sender {
  readonly queue: JobQueue<typeof mail>;
  readonly engine: Engine;
  constructor(@InjectQueue(mail) queue: JobQueue<typeof mail>, @InjectEngine() engine: Engine) {
    this.queue = queue;
    this.engine = engine;
  }
}

const root = (options: Partial<CurfewModuleOptions> = {}) =>
  CurfewModule.forRoot({ store: "memory:", jobs: [mail], ...options });

async function open(
  providers: NonNullable<Parameters<typeof openNestTest>[0]["providers"]>,
  options: NestTestOptions & Partial<CurfewModuleOptions> = {},
) {
  const { work, sagas, ...rest } = options;
  const imports = [root({ ...(work !== undefined && { work }), ...(sagas && { sagas }) })];
  const test = await openNestTest({ imports, providers }, rest);
  onTestFinished(() => test.close());
  return test;
}

describe("CurfewModule", () => {
  it("runs the jobs of a decorated method, which has its dependencies", async () => {
    const test = await open([Postbox, MailProcessor, Sender]);
    const job = await test.app.get(Sender).queue.enqueue({ to: "ada" });
    await test.settle();
    expect(test.app.get(Postbox).sent).toEqual(["ada"]);
    expect((await job.load())?.result).toEqual({ sent: "ada" });
  });

  it("runs the jobs of a decorated class with its method handle", async () => {
    const ran: string[] = [];
    @Processor(tick)
    class Ticker {
      handle({ type }: AttemptContext) {
        ran.push(type);
      }
    }
    const test = await open([Ticker]);
    await test.engine.enqueue(tick);
    await test.settle();
    expect(ran).toEqual(["tick"]);
  });

  it("finds processors of a parent class, and of a provider with another decorator around the method", async () => {
    const ran: unknown[] = [];
    const wrapped: MethodDecorator = (_target, _key, descriptor) => {
      const inner = descriptor.value as unknown as (context: unknown) => unknown;
      descriptor.value = function (this: unknown, context: unknown) {
        ran.push("around");
        return inner.call(this, context);
      } as never;
    };
    class Parent {
      readonly name: string = "parent";
      @wrapped
      @Processor(tick)
      run() {
        ran.push(this.name);
      }
    }
    @Injectable()
    class Child extends Parent {
      override readonly name = "child";
    }
    const test = await open([Child]);
    await test.engine.enqueue(tick);
    await test.settle();
    expect(ran).toEqual(["around", "child"]);
  });

  it("works with standard decorators of methods and classes", async () => {
    const source = `
      export const make = (Processor, tick, mail, ran) => {
        class Methods { @Processor(tick) run() { ran.push("method"); } }
        @Processor(mail) class Whole { handle({ payload }) { ran.push(payload.to); return { sent: "" }; } }
        return [Methods, Whole];
      };`;
    const { code } = await transform(source, { loader: "ts", target: "es2022", format: "esm" });
    expect(code).toContain("addInitializer");
    const module = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
      make(...given: unknown[]): (new () => object)[];
    };
    const ran: unknown[] = [];
    const test = await open(module.make(Processor, tick, mail, ran));
    await test.engine.enqueue(tick);
    await test.engine.enqueue(mail, { to: "class" });
    await test.settle();
    expect(ran.toSorted()).toEqual(["class", "method"]);
  });

  it("injects queues where forFeature names them, and says which one is missing", async () => {
    @Module({
      imports: [CurfewModule.forFeature([tick])],
      providers: [{ provide: "uses", useFactory: (queue) => queue, inject: [queueToken(tick)] }],
    })
    class Feature {}
    const test = await openNestTest({ imports: [Feature, root()] });
    onTestFinished(() => test.close());
    expect(test.app.get("uses").definition).toBe(tick);
    @Injectable()
    class Lost {
      readonly queue: unknown;
      constructor(@InjectQueue(tick) queue: unknown) {
        this.queue = queue;
      }
    }
    await expect(openNestTest({ imports: [root()], providers: [Lost] })).rejects.toThrow(
      "queue of tick: add it to CurfewModule.forFeature([...])",
    );
  });

  it("forRootAsync takes its options from other providers", async () => {
    @Module({ providers: [{ provide: "STORE", useValue: "memory:" }], exports: ["STORE"] })
    class Config {}
    const useFactory = (store: string) => ({ store, work: false as const });
    const module = await Test.createTestingModule({
      imports: [
        CurfewModule.forRootAsync({ imports: [Config], inject: ["STORE"], useFactory, jobs: [mail] }),
      ],
      providers: [Sender],
    }).compile();
    await module.init();
    const job = await module.get(Sender).queue.enqueue({ to: "ada" });
    expect((await job.load())?.state).toBe("available");
    await module.close();
    await expect(module.get(Sender).queue.enqueue({ to: "eve" })).rejects.toThrow("the engine is closed");
  });

  it("takes concurrency from the decorator, from work.queues, and from the default, in this order", async () => {
    const other = defineJob({ type: "other", queue: "other" });
    const third = defineJob({ type: "third", queue: "third" });
    class All {
      @Processor(mail, { concurrency: 2 })
      mail() {
        return { sent: "" };
      }
      @Processor(other)
      other() {}
    }
    const test = await open([All], {
      work: {
        queues: { mail: { concurrency: 9 }, other: { concurrency: 3 }, third: { concurrency: 4 } },
        processors: [processor(third, () => {})],
      },
    });
    const { worker } = test.app.get(CurfewWorkers);
    const slots = [...(worker?.consumers.values() ?? [])].map(({ queue, concurrency }) => [
      queue,
      concurrency,
    ]);
    expect(Object.fromEntries(slots)).toEqual({ mail: 2, other: 3, third: 4 });
  });

  it("refuses two numbers for one queue, a request-scoped processor, a class without handle, and a field", async () => {
    const second = defineJob({ type: "second", queue: "mail" });
    class Two {
      @Processor(mail, { concurrency: 2 })
      one() {
        return { sent: "" };
      }
      @Processor(second, { concurrency: 3 })
      two() {}
    }
    await expect(openNestTest({ imports: [root()], providers: [Two] })).rejects.toThrow(
      "Processor(second).concurrency: 3 differs from 2",
    );
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @Processor(tick)
      run() {}
    }
    await expect(openNestTest({ imports: [root()], providers: [Scoped] })).rejects.toThrow(
      "Processor(tick): Scoped is request-scoped",
    );
    class Empty {}
    (Processor(tick) as (type: unknown) => void)(Empty);
    await expect(openNestTest({ imports: [root()], providers: [Empty] })).rejects.toThrow(
      "Processor(tick): Empty has no method handle",
    );
    expect(() => (Processor(tick) as (...args: unknown[]) => void)(undefined, { kind: "field" })).toThrow(
      "Processor",
    );
    expect(() => Processor(tick, { concurency: 3 } as never)).toThrow("concurency");
  });

  it("hosts sagas", async () => {
    const order = defineSaga({
      type: "order",
      state: z.object({ id: z.string() }),
      messages: { placed: z.object({ id: z.string() }) },
      timeouts: {},
      correlate: { placed: ({ id }) => id },
      startedBy: "placed",
      start: ({ id }) => ({ id }),
      on: {},
      onTimeout: {},
    });
    const test = await open([], { sagas: [order] });
    await test.engine.send(order, "placed", { id: "7" });
    await test.settle();
    expect((await test.engine.saga(order, "7").load())?.state).toEqual({ id: "7" });
  });

  it("moves two hours in a test", async () => {
    const test = await open([Postbox, MailProcessor, Sender]);
    await test.app.get(Sender).queue.enqueue({ to: "later" }, { delay: "2h" });
    await test.advance("119m");
    expect(test.app.get(Postbox).sent).toEqual([]);
    await test.advance("1m");
    expect(test.app.get(Postbox).sent).toEqual(["later"]);
  });

  it("runs the example under virtual time, with HTTP", async () => {
    const create = (module: TestingModule) => module.createNestApplication();
    const test = await openNestTest({ imports: [AppModule] }, { create });
    onTestFinished(() => test.close());
    await test.app.listen(0, "127.0.0.1");
    const url = await test.app.getUrl();
    const body = JSON.stringify({ email: "ada@example.org", takes: 0 });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`${url}/users`, { method: "POST", headers, body });
    const { job } = (await reply.json()) as { job: string };
    await test.settle();
    await expect.poll(() => test.app.get(Mailer).sent).toEqual(["ada@example.org"]);
    await test.settle();
    expect((await test.engine.load(job))?.state).toBe("completed");
  });

  it("drains the worker before the modules that its handlers use are destroyed", async () => {
    const latch = createLatch();
    const order: string[] = [];
    @Injectable()
    class Database implements OnModuleDestroy {
      onModuleDestroy() {
        order.push("database closed");
      }
    }
    @Module({ providers: [Database], exports: [Database] })
    class DatabaseModule {}
    @Injectable()
    class Slow {
      readonly database: Database;
      constructor(@Inject(Database) database: Database) {
        this.database = database;
      }
      @Processor(tick)
      async run() {
        await latch.pass();
        order.push("job done");
      }
    }
    @Module({ imports: [DatabaseModule], providers: [Slow] })
    class JobsModule {}
    const module = await Test.createTestingModule({
      imports: [DatabaseModule, JobsModule, root()],
    }).compile();
    await module.init();
    const engine = module.get<Engine>(ENGINE);
    await engine.enqueue(tick);
    await latch.reached();
    const closing = module.close();
    latch.open();
    await closing;
    expect(order).toEqual(["job done", "database closed"]);
  });

  it("says whether it is healthy, and why not", async () => {
    const test = await open([Postbox, MailProcessor]);
    const health = test.app.get(CurfewHealth);
    expect(await health.check()).toEqual({ curfew: { status: "up", running: 0 } });
    await test.app.get(CurfewWorkers).worker?.close({ drain: "0s" });
    expect(await health.check("jobs")).toEqual({ jobs: { status: "down", reason: "closing", running: 0 } });
    test.engine.store.clock = () => Promise.reject(new Error("no route"));
    expect((await health.check()).curfew?.reason).toBe("the store failed: Error: no route");
  });
});
