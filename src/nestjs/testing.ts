/// <reference lib="esnext.disposable" preserve="true" />

import type { INestApplicationContext, ModuleMetadata } from "@nestjs/common";
import { Test, type TestingModule, type TestingModuleBuilder } from "@nestjs/testing";
import { openTestEngine, type TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import { ENGINE } from "./tokens.ts";

export interface NestTestOptions<App extends INestApplicationContext = TestingModule>
  extends TestEngineOptions {
  /** Overrides other providers, as in `Test.createTestingModule`. */
  readonly override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
  /** Makes the application: `(module) => module.createNestApplication()`. Default: the module alone, without HTTP. */
  readonly create?: (module: TestingModule) => App;
}

/** An application whose engine runs under virtual time. */
export interface NestTest<App extends INestApplicationContext = TestingModule> extends TestEngine {
  /** Has been initialised, so its workers run. */
  readonly app: App;
}

/** Starts modules that import `CurfewModule` on an engine in memory, whose time moves with `advance("2h")`. */
export async function openNestTest<App extends INestApplicationContext = TestingModule>(
  metadata: ModuleMetadata,
  options: NestTestOptions<App> = {},
): Promise<NestTest<App>> {
  const { override = (same) => same, create, ...rest } = options;
  const test = await openTestEngine(rest);
  try {
    const builder = Test.createTestingModule(metadata).overrideProvider(ENGINE).useValue(test.engine);
    const module = await override(builder).compile();
    const app = (create?.(module) ?? module) as App;
    await app.init();
    const close = async () => {
      // The engine first: draining takes virtual time, which only the test can let pass.
      await test.close();
      await app.close();
    };
    return { ...test, app, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await test.close();
    throw error;
  }
}
