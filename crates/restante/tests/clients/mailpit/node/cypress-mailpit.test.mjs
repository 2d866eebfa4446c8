// The requests of the commands of `cypress-mailpit`, without a browser: `Cypress` and `cy` are replaced by what the commands
// use of them, with promises instead of chains of commands.

import assert from "node:assert/strict";
import { register } from "node:module";
import { before, test } from "node:test";
import { auth, picture, url } from "./server.mjs";

/** The commands that the package adds, by name. */
const commands = {};

globalThis.Cypress = {
    expose: (name) => ({ MAILPIT_URL: url })[name],
    config: () => 60_000,
    Commands: { add: (name, options, command) => { commands[name] = command; } },
};

globalThis.cy = {
    env: async () => ({ MAILPIT_USERNAME: auth.username, MAILPIT_PASSWORD: auth.password }),
    wrap: async (value) => value,
    wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
    /** Like Cypress: fails for a status other than 2xx and 3xx, and parses a body that is declared as JSON. */
    async request({ method, url, qs, body, auth }) {
        const target = new URL(url);
        for (const [name, value] of Object.entries(qs ?? {})) target.searchParams.set(name, value);
        const headers = { accept: "*/*" };
        if (auth) headers.authorization = `Basic ${btoa(`${auth.user}:${auth.pass}`)}`;
        if (body) headers["content-type"] = "application/json";
        const response = await fetch(target, { method, headers, body: body && JSON.stringify(body) });
        const text = await response.text();
        if (!response.ok) throw new Error(`${response.status}: ${text}`);
        const isJson = response.headers.get("content-type")?.startsWith("application/json");
        return { status: response.status, body: isJson ? JSON.parse(text) : text };
    },
};

before(async () => {
    register("./cypress_hooks.mjs", import.meta.url);
    await import("cypress-mailpit");
    await commands.mailpitDeleteAllEmails();
});

test("a mail with default values is sent, found and read", async () => {
    const { ID } = await commands.mailpitSendMail();
    const message = await commands.mailpitGetMail();
    assert.equal(message.ID, ID);
    assert.equal(await commands.mailpitGetSubject(message), "Hello Mailpit");
    assert.deepEqual(await commands.mailpitGetRecipientAddress(message), ["jane@example.com"]);
    assert.equal(await commands.mailpitGetFromAddress(message), "from@example.com");
    assert.deepEqual(await commands.mailpitGetAttachments(message), []);
    assert.equal(await commands.mailpitGetMailHTMlBody(message), "<p>hello from mailpit</p>");
    assert.equal(await commands.mailpitGetMailTextBody(message), "hello from mailpit");
    assert.deepEqual(message.Bcc.map((address) => address.Address), ["bcc@example.com"]);
    assert.equal((await commands.mailpitGetMail(ID)).Subject, "Hello Mailpit");
});

test("attachments", async () => {
    const attachments = [{ Filename: "picture.png", Content: picture.toString("base64") }];
    const { ID } = await commands.mailpitSendMail({ subject: "Picture", attachments });
    assert.deepEqual(await commands.mailpitGetAttachments(await commands.mailpitGetMail(ID)), ["picture.png"]);
});

test("lists", async () => {
    const all = await commands.mailpitGetAllMails();
    assert.deepEqual(all.messages.map((message) => message.Subject), ["Picture", "Hello Mailpit"]);
    const second = await commands.mailpitGetAllMails(1, 1);
    assert.deepEqual([second.start, second.count, second.total], [1, 1, 2]);
    assert.equal(second.messages[0].Subject, "Hello Mailpit");
});

test("search and waiting", async () => {
    const subjects = (found) => found.messages.map((message) => message.Subject);
    assert.deepEqual(subjects(await commands.mailpitSearchEmails("subject:picture")), ["Picture"]);
    assert.deepEqual(subjects(await commands.mailpitGetEmailsBySubject("Hello")), ["Hello Mailpit"]);
    assert.equal((await commands.mailpitGetEmailsByTo("jane@example.com")).messages_count, 2);
    assert.equal((await commands.mailpitHasEmailsBySubject("Picture")).messages_count, 1);
    assert.equal((await commands.mailpitHasEmailsByTo("jane@example.com")).messages_count, 2);
    assert.equal((await commands.mailpitHasEmailsBySearch("has:attachment")).messages_count, 1);
    assert.equal((await commands.mailpitNotHasEmailsBySubject("absent")).messages_count, 0);
    assert.equal((await commands.mailpitNotHasEmailsByTo("absent@example.com")).messages_count, 0);
    assert.equal((await commands.mailpitNotHasEmailsBySearch("is:tagged")).messages_count, 0);
});

test("read marks", async () => {
    const unread = async () => (await commands.mailpitGetAllMails()).unread;
    assert.equal(await commands.mailpitSetAllEmailStatusAsRead(), "ok");
    assert.equal(await unread(), 0);
    const message = await commands.mailpitGetMail();
    assert.equal(await commands.mailpitSetStatusAsUnRead(message), "ok");
    assert.equal(await unread(), 1);
    assert.equal(await commands.mailpitSetAllEmailStatusAsUnRead(), "ok");
    assert.equal(await unread(), 2);
    assert.equal(await commands.mailpitSetStatusAsRead([message]), "ok");
    assert.equal(await unread(), 1);
});

test("the check for spam is not configured", async () => {
    const message = await commands.mailpitGetMail();
    await assert.rejects(commands.mailpitGetMailSpamAssassinSummary(message), /^Error: 4\d\d: /);
});

test("deletion", async () => {
    assert.equal((await commands.mailpitDeleteEmailsBySearch("subject:picture")).body, "ok");
    assert.equal((await commands.mailpitGetAllMails()).total, 1);
    assert.equal((await commands.mailpitDeleteAllEmails()).body, "ok");
    assert.equal((await commands.mailpitGetAllMails()).total, 0);
    await assert.rejects(commands.mailpitGetMail(), /^Error: 404: /);
});
