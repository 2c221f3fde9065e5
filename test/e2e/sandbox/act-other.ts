/** A module for another definition than the one it is named for. */
import { defineJob } from "../../../src/core/job/job-definition.ts";
import { processor } from "../../../src/engine/attempt/processor.ts";

export default processor(defineJob({ type: "sandbox.other" }), () => undefined);
