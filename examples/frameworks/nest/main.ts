/** A Nest application with a worker inside. Build it as your Nest applications are built: Node runs no decorators. */
import "reflect-metadata";
import { NestFactory } from "@nestjs/core";
import { AppModule } from "./app.ts";

const app = await NestFactory.create(AppModule);
// Without this, SIGTERM ends the process at once and nothing is drained. With the option, it then ends with code 0.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
