// The events of the API, with the WebSocket of version 1 of the client `mailpit-api`. In version 2 it is a separate package
// that the registry does not have.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MailpitClient } from "mailpit-api-1";
import { assertShape, auth, summary, url } from "./server.mjs";

/** The client gives up after five seconds unless another time is set. */
const TIMEOUT = 60_000;
const mailpit = new MailpitClient(url, auth);

const mail = {
    From: { Email: "ann@example.test", Name: "Ann" },
    To: [{ Email: "bob@example.test", Name: "Bob" }],
    Cc: [{ Email: "cid@example.test", Name: "Cid" }],
    Bcc: ["dan@example.test"],
    ReplyTo: [{ Email: "noreply@example.test", Name: "" }],
    Subject: "An event",
    Text: "Text",
};
/**
 * Runs an action and returns its result, then the first event of each of these types, and waits for totals. Totals of an earlier
 * action may arrive late, and are skipped.
 */
async function eventsOf(types, action, total, unread) {
    const totals = new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no event with ${total} messages, ${unread} unread`)), TIMEOUT);
        const remove = mailpit.onEvent("stats", (event) => {
            assertShape(event, { Type: "stats", Data: { Total: Number, Unread: Number, Version: String } });
            if (event.Data.Total === total && event.Data.Unread === unread) {
                clearTimeout(timer);
                remove();
                resolve();
            }
        });
    });
    const events = types.map((type) => mailpit.waitForEvent(type, TIMEOUT));
    const result = await action();
    const received = await Promise.all(events);
    await totals;
    return [result, ...received];
}

let id;

before(async () => {
    await mailpit.deleteMessages();
    mailpit.connectWebSocket();
    await new Promise((resolve) => mailpit.webSocket.addEventListener("open", resolve, { once: true }));
});
after(() => mailpit.disconnect());

test("a new message", async () => {
    const [sent, arrived] = await eventsOf(["new"], () => mailpit.sendMessage(mail), 1, 1);
    id = sent.ID;
    assertShape(arrived, { Type: "new", Data: summary });
    assert.deepEqual([arrived.Data.ID, arrived.Data.Subject], [id, mail.Subject]);
});

test("a read message", async () => {
    const [, update] = await eventsOf(["update"], () => mailpit.setReadStatus({ IDs: [id], Read: true }), 1, 0);
    assert.deepEqual(update, { Type: "update", Data: { ID: id, Read: true } });
});

test("a tagged message", async () => {
    const event = mailpit.waitForEvent("update", TIMEOUT);
    await mailpit.setTags({ IDs: [id], Tags: ["tagged"] });
    assert.deepEqual(await event, { Type: "update", Data: { ID: id, Tags: ["tagged"] } });
});

test("a deleted message", async () => {
    const [, deleted] = await eventsOf(["delete"], () => mailpit.deleteMessages({ IDs: [id] }), 0, 0);
    assert.deepEqual(deleted, { Type: "delete", Data: { ID: id } });
});

test("a message deleted by search", async () => {
    const [{ ID }] = await eventsOf([], () => mailpit.sendMessage(mail), 1, 1);
    const deletion = () => mailpit.deleteMessagesBySearch({ query: "subject:event" });
    const [, deleted] = await eventsOf(["delete"], deletion, 0, 0);
    assert.deepEqual(deleted, { Type: "delete", Data: { ID } });
});

test("all messages deleted", async () => {
    await eventsOf([], () => mailpit.sendMessage(mail), 1, 1);
    const [, truncated] = await eventsOf(["truncate"], () => mailpit.deleteMessages(), 0, 0);
    assert.deepEqual(truncated, { Type: "truncate", Data: null });
});

test("a listener of all types", async () => {
    const types = new Set();
    const remove = mailpit.onEvent("*", (event) => types.add(event.Type));
    await eventsOf(["new"], () => mailpit.sendMessage(mail), 1, 1);
    remove();
    assert.deepEqual([...types].sort(), ["new", "stats"]);
    await mailpit.deleteMessages();
});

test("a wrong password opens no WebSocket", async () => {
    const stranger = new MailpitClient(url, { username: "nobody", password: "wrong" });
    stranger.connectWebSocket();
    const opened = await new Promise((resolve) => {
        stranger.webSocket.addEventListener("open", () => resolve(true), { once: true });
        stranger.webSocket.addEventListener("error", () => resolve(false), { once: true });
    });
    stranger.disconnect();
    assert.equal(opened, false);
});
