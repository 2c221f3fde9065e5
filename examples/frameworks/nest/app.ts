import {
  Body,
  Controller,
  Get,
  HttpCode,
  Module,
  Param,
  Post,
  ServiceUnavailableException,
} from "@nestjs/common";
import { CurfewHealth, CurfewModule, InjectQueue, type JobQueue } from "curfew/nestjs";
import { welcome } from "./jobs.ts";
import { MailModule } from "./mail.ts";

@Controller()
class UsersController {
  readonly #welcome: JobQueue<typeof welcome>;
  readonly #health: CurfewHealth;

  constructor(@InjectQueue(welcome) queue: JobQueue<typeof welcome>, health: CurfewHealth) {
    this.#welcome = queue;
    this.#health = health;
  }

  /** Answers when the job is durable, and does not wait for the mail. */
  @Post("users")
  @HttpCode(202)
  async create(@Body() { email, takes }: { email: string; takes?: number }) {
    const { id } = await this.#welcome.enqueue({ to: email, takes });
    return { job: id };
  }

  @Get("jobs/:id")
  async job(@Param("id") id: string) {
    const job = await this.#welcome.job(id).load();
    return { state: job?.state ?? null, result: job?.result ?? null };
  }

  @Get("health")
  async health() {
    const result = await this.#health.check();
    if (result.curfew?.status !== "up") throw new ServiceUnavailableException(result);
    return result;
  }
}

@Module({
  controllers: [UsersController],
  imports: [
    MailModule,
    // Last, so that Nest stops its worker before the modules that the worker's handlers use.
    CurfewModule.forRootAsync({
      jobs: [welcome],
      useFactory: () => ({
        store: process.env.STORE ?? "sqlite:shop.db",
        work: process.env.WORK === "off" ? false : { drain: "20s" },
      }),
    }),
  ],
})
export class AppModule {}
