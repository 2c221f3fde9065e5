import type { NextConfig } from "next";

const config: NextConfig = {
  // Loaded by Node as they are: the stores load native code, and a sandbox needs its files on disk.
  serverExternalPackages: ["curfew", "better-sqlite3", "pg"],
};

export default config;
