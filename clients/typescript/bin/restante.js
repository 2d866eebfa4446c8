#!/usr/bin/env node
import { run } from "../dist/command.js";

run(process.argv.slice(2));
