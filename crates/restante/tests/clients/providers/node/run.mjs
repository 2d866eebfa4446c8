// Sends the messages with SDKs and checks what these return.
// Usage: run.mjs [--only MESSAGE] [--refused] SDK...
// PROVIDERS_URL is the address of the server, PROVIDERS_KEY the key. With --refused, the server has to refuse the key.

import assert from "node:assert/strict";
import { inspect, parseArgs } from "node:util";
import { messagesFor } from "./messages.mjs";

const { values: options, positionals: sdks } = parseArgs({
    options: { only: { type: "string" }, refused: { type: "boolean", default: false } },
    allowPositionals: true,
});
const { PROVIDERS_URL: url, PROVIDERS_KEY: key = "key" } = process.env;

/** Runs one step. A failure is printed, and the exit code of the process becomes 1. */
async function step(name, action) {
    if (options.only && !name.endsWith(options.only)) return;
    try {
        await action();
    } catch (error) {
        console.error(`${name}: ${inspect(error, { depth: 6, breakLength: 130 })}`);
        process.exitCode = 1;
    }
}

/** Returns the error of a request. */
async function errorOf(request) {
    let answer;
    try {
        answer = await request;
    } catch (error) {
        return error;
    }
    assert.fail(`succeeded with ${inspect(answer)}`);
}

for (const name of sdks) {
    const { connect } = await import(`./sdks/${name}.mjs`);
    const sdk = connect(url, key);
    const messages = messagesFor(`node-${name}`);
    if (options.refused) {
        await step(`${name} refused`, async () => sdk.checkRefused(await errorOf(sdk.send(messages.basic))));
        continue;
    }
    for (const message of ["basic", "attachment", "inline", "many", "unicode"]) {
        if (message === "inline" && sdk.hasInlineImages === false) continue;
        await step(`${name} ${message}`, () => sdk.send(messages[message]));
    }
    const batch = ["batch-1", "batch-2", "batch-3"].map((name) => messages[name]);
    await step(`${name} batch`, () => sdk.sendBatch ? sdk.sendBatch(batch) : Promise.all(batch.map((message) => sdk.send(message))));
    if (sdk.sendTemplate) await step(`${name} template`, () => sdk.sendTemplate(messages.template));
    await step(`${name} invalid`, async () => sdk.checkInvalid(await errorOf(sdk.send(messages.invalid))));
}
