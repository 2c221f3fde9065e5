import { setPriority } from "node:os";

/**
 * Tests that watch deadlines of real time go first on a busy core: all other tests have this lower priority, and so
 * have the processes that they start.
 */
setPriority(10);
