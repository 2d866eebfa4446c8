// Tests the client against a real server. RESTANTE_SERVER and RESTANTE_SMTP (host:port) contain its addresses.

import assert from "node:assert/strict";
import { createConnection } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { NotFound, Restante, RestanteError, UnexpectedMail, WaitTimeout } from "../dist/index.js";

const restante = new Restante();
const CRLF = "\r\n";

/** Sends messages over SMTP to one recipient or to several, as the software under test would. */
async function send(to, ...mails) {
  const [host, port] = process.env.RESTANTE_SMTP.split(":");
  const socket = createConnection(Number(port), host);
  const replies = socket.setEncoding("utf8")[Symbol.asyncIterator]();
  let received = "";
  const reply = async () => {
    while (!/^\d{3} .*\r\n$/m.test(received)) received += (await replies.next()).value;
    const text = received;
    received = "";
    return text;
  };
  const command = async (line, expected) => {
    socket.write(line + CRLF);
    const text = await reply();
    assert.ok(text.startsWith(expected), `${line}: ${text}`);
  };
  await reply();
  await command("HELO test", "250");
  for (const mail of mails) {
    await command("MAIL FROM:<shop@example.com>", "250");
    for (const recipient of [to].flat()) await command(`RCPT TO:<${recipient}>`, "250");
    await command("DATA", "354");
    await command(mail + CRLF + ".", "250");
  }
  socket.end("QUIT" + CRLF);
}

function message(subject = "Welcome", text = "Your code is 482913.", type = "text/plain") {
  return [`From: Shop <shop@example.com>`, `Subject: ${subject}`, `Content-Type: ${type}`, "", text].join(CRLF);
}

/** Returns everything that a generator yields. */
async function collect(generator) {
  const all = [];
  for await (const one of generator) all.push(one);
  return all;
}

/** Returns a mailbox that no other test uses. */
function newMailbox() {
  const name = `test-${crypto.randomUUID()}`;
  return Object.assign(restante.mailbox(name), { address: `${name}@example.org` });
}

test("waitForMessage returns when a message arrives", async () => {
  const box = newMailbox();
  const waiting = box.waitForMessage({ match: "subject:welcome", timeout: 20_000 });
  await sleep(200);
  await send(box.address, message("Something else"), message());
  const mail = await waiting;
  assert.equal(mail.subject, "Welcome");
  assert.equal(mail.from, "Shop <shop@example.com>");
  assert.equal(mail.text.trim(), "Your code is 482913.");
  assert.equal((await mail.source()).length, mail.size);
  assert.equal(await mail.code(), "482913");
  await assert.rejects(mail.link("confirm"), NotFound);
});

test("runs do not see each other's mail", async () => {
  const [first, second] = [await restante.lease({ expiresIn: "10m" }), await restante.lease()];
  assert.notEqual(first.project, second.project);
  assert.equal(`${first.smtp.host}:${first.smtp.port}`, process.env.RESTANTE_SMTP);
  await send(first.address("ann"), "Subject: first" + CRLF + CRLF);
  await send(second.address("ann"), "Subject: second" + CRLF + CRLF);
  assert.equal((await first.mailbox("ann").waitForMessage()).subject, "first");
  assert.equal((await second.waitForMessage()).subject, "second");
  await first.expectNone({ match: "subject:second", timeout: 200 });
  await first.end();
  assert.equal(await first.last(), "0");
  assert.notEqual(await second.last(), "0");
  await second.end();
  const inProject = await new Restante({ url: `${restante.url}/p/shop` }).lease();
  assert.equal(inProject.url, restante.url);
  assert.equal(await inProject.last(), "0");
  await assert.rejects(restante.lease({ expiresIn: "25h" }), /expires-in/);
});

test("link and code", async () => {
  const box = newMailbox();
  await send(box.address, message("x", '<a href="https://shop.example/v?t=1">Confirm <b>now</b></a>', "text/html"));
  const mail = await box.waitForMessage();
  assert.equal(await mail.link("confirm NOW"), "https://shop.example/v?t=1");
  assert.equal(await mail.link(/v\?t=\d$/), "https://shop.example/v?t=1");
  await assert.rejects(mail.code(), NotFound);
});

test("htmlCheck", async () => {
  const box = newMailbox();
  await send(box.address, message("x", `<p>News</p>${CRLF}<div style="display:grid">Grid</div>`, "text/html"));
  const mail = await box.waitForMessage();
  const { score, features, truncated } = await mail.htmlCheck();
  assert.ok(score.supported > 0 && score.supported < 100 && !truncated, JSON.stringify(score));
  const grid = features.find(({ slug }) => slug === "css-display-grid");
  assert.deepEqual([grid.count, grid.lines], [1, [2]]);
  assert.ok(grid.clients.some(({ family, support }) => family === "outlook" && support === "no"));
  await send(box.address, message("y"));
  await assert.rejects((await box.waitForMessage({ after: mail })).htmlCheck(), NotFound);
});

test("waitForMessages, and messages after one", async () => {
  const box = newMailbox();
  await send(box.address, message("number 0"), message("number 1"), message("number 2"));
  const messages = await box.waitForMessages(3);
  assert.deepEqual(messages.map((one) => one.subject), ["number 0", "number 1", "number 2"]);
  assert.equal((await box.waitForMessage({ after: messages[1] })).subject, "number 2");
  assert.equal((await box.waitForMessage({ after: null, timeout: undefined })).subject, "number 0");
  assert.equal(await box.last(), messages[2].id);
  assert.equal(await newMailbox().last(), "0");
});

test("WaitTimeout lists what arrived", async () => {
  const box = newMailbox();
  await send(box.address, message("Something else"));
  const failure = await box.waitForMessages(2, { timeout: 200 / 3 }).catch((error) => error);
  assert.ok(failure instanceof WaitTimeout, failure);
  assert.match(failure.message, /Something else/);
  assert.deepEqual(failure.messages.map((one) => one.subject), ["Something else"]);
});

test("expectNone", async () => {
  const box = newMailbox();
  await box.expectNone({ timeout: 200 });
  await send(box.address, message());
  const failure = await box.expectNone({ timeout: 20_000 }).catch((error) => error);
  assert.ok(failure instanceof UnexpectedMail, failure);
  assert.equal(failure.messages[0].subject, "Welcome");
});

test("mark, delete and purge", async () => {
  const box = newMailbox();
  await send(box.address, message(), message());
  const mail = await box.message();
  await mail.markSeen();
  assert.deepEqual((await box.messages()).map((one) => one.seen), [false, true]);
  await mail.delete();
  await assert.rejects(mail.delete(), NotFound);
  await box.purge();
  assert.deepEqual(await box.messages(), []);
});

test("search and mailboxes", async () => {
  const box = newMailbox();
  await send(box.address, message("Invoice 1"), message("Invoice 2"));
  const found = [];
  for await (const one of restante.search("invoice", { mailbox: box.name })) found.push(one.subject);
  assert.deepEqual(found, ["Invoice 2", "Invoice 1"]);
  for await (const state of restante.mailboxes(box.name)) assert.equal(state.messages, 2);
  const failure = await restante.search('"never ends').next().catch((error) => error);
  assert.equal(failure.status, 400);
});

test("messages of all mailboxes", async () => {
  const box = newMailbox();
  const other = newMailbox();
  const before = await restante.last();
  await send([box.address, other.address], message("To both"));
  await send(box.address, message("To one"));
  // Other tests send messages at the same time.
  const query = `subject:to mailbox:${box.name}`;
  const [one, both] = await collect(restante.messages({ query, after: before }));
  assert.deepEqual([both.subject, both.from, both.tags, both.seen], ["To both", "Shop <shop@example.com>", [], false]);
  assert.deepEqual(both.mailboxes.sort(), [box.name, other.name].sort());
  assert.deepEqual(both.recipients.sort(), [box.address, other.address].sort());
  assert.equal(both.snippet, "Your code is 482913.");
  assert.deepEqual((await collect(restante.messages({ query, limit: 1 }))).map(({ id }) => id), [one.id]);
  assert.deepEqual((await collect(restante.messages({ query, before: one, after: before }))).map(({ id }) => id), [both.id]);
  const failure = await collect(restante.messages({ query: '"never ends' })).catch((error) => error);
  assert.equal(failure.status, 400);
});

test("wait for a message in any mailbox", async () => {
  const box = newMailbox();
  const match = `mailbox:${box.name}`;
  const before = await restante.last();
  const waiting = restante.waitForMessage({ match, after: before, timeout: 20_000 });
  await sleep(200);
  await send(box.address, message("x", '<a href="https://shop.example/v">Your code is 482913.</a>', "text/html"));
  const mail = await waiting;
  assert.deepEqual(mail.mailboxes, [box.name]);
  assert.equal(mail.text.trim().startsWith("Your code"), true);
  assert.match(mail.html, /shop\.example/);
  assert.equal((await mail.source()).length, mail.size);
  assert.equal(await mail.code(), "482913");
  assert.equal(await mail.link("code"), "https://shop.example/v");
  assert.ok(await mail.transcript());
  assert.deepEqual([mail.envelopeSender, mail.client.helo, mail.client.login], ["shop@example.com", "test", null]);
  assert.deepEqual(mail.copies.map(({ mailbox }) => mailbox), [box.name]);
  assert.equal(JSON.parse(JSON.stringify(mail)).id, mail.id);

  const timeout = await restante.waitForMessages(2, { match, timeout: 200 }).catch((error) => error);
  assert.ok(timeout instanceof WaitTimeout, timeout);
  assert.deepEqual(timeout.messages.map(({ id }) => id), [mail.id]);
  await restante.expectNone({ match, after: mail, timeout: 200 });
  const unexpected = await restante.expectNone({ match, timeout: 20_000 }).catch((error) => error);
  assert.ok(unexpected instanceof UnexpectedMail, unexpected);
  await assert.rejects(restante.message("7"), NotFound);
});

test("tag and delete messages of all mailboxes", async () => {
  const [box, other] = [newMailbox(), newMailbox()];
  await send([box.address, other.address], message("number 0"), message("number 1"), message("number 2"));
  const entries = await restante.waitForMessages(3, { match: `mailbox:${box.name}` });
  const [first, second] = await Promise.all(entries.map(({ id }) => restante.message(id)));
  const tag = `run ${first.id}`;
  await first.markSeen();
  await first.setTags([tag, "checked"]);
  await second.setTags([tag]);
  const changed = await restante.message(first.id);
  assert.deepEqual([changed.seen, changed.tags], [true, [tag, "checked"]]);
  assert.deepEqual(changed.copies.map(({ seen, tags }) => [seen, tags.length]), [[true, 2], [true, 2]]);
  assert.deepEqual((await collect(restante.messages({ tag }))).map(({ id }) => id), [second.id, first.id]);
  assert.deepEqual((await collect(restante.messages({ tag: [tag, "CHECKED"] }))).map(({ id }) => id), [first.id]);
  assert.equal((await first.setTags(["a,b"]).catch((error) => error)).status, 422);

  assert.equal(await restante.deleteMessages({ query: "subject:number", tag: [tag, "checked"] }), 1);
  await second.delete();
  await assert.rejects(second.delete(), NotFound);
  assert.deepEqual((await box.messages()).map(({ subject }) => subject), ["number 2"]);
  assert.deepEqual((await other.messages()).map(({ subject }) => subject), ["number 2"]);
  assert.equal((await restante.deleteMessages({}).catch((error) => error)).status, 400);
});

test("mark and delete messages of a mailbox", async () => {
  const [box, other] = [newMailbox(), newMailbox()];
  await send([box.address, other.address], message("number 0"), message("number 1"), message("number 2"));
  const [first, second, third] = await box.waitForMessages(3);
  const listed = await collect(restante.messages({ mailbox: box.address }));
  assert.deepEqual(listed.map(({ id }) => id), [third.id, second.id, first.id]);
  assert.deepEqual(listed.map(({ mailboxes, recipients }) => [mailboxes, recipients]), Array(3).fill([[box.name], [box.address]]));
  const found = await collect(restante.messages({ mailbox: box.name, query: '"number 1"' }));
  assert.deepEqual(found.map(({ id }) => id), [second.id]);
  const { copies } = await restante.message(second.id);
  assert.deepEqual(copies.flatMap(({ recipients }) => recipients).sort(), [box.address, other.address].sort());

  assert.equal(await restante.markMessages({ mailbox: box.name }), 3);
  assert.equal(await restante.markMessages({ mailbox: box.name, query: '"number 1"' }, false), 1);
  assert.deepEqual((await box.messages()).map(({ seen }) => seen), [true, false, true]);
  assert.deepEqual((await other.messages()).map(({ seen }) => seen), [false, false, false]);
  const usage = await restante.usage();
  assert.ok(usage.copies >= 6 && usage.messages >= 3 && usage.mailboxes >= 2 && usage.bytes > 0, JSON.stringify(usage));
  assert.equal(await restante.deleteMessages({ mailbox: box.name }), 3);
  assert.deepEqual(await box.messages(), []);
  assert.equal((await other.messages()).length, 3);
});

test("an entry of a mailbox is its copy", async () => {
  const [box, other] = [newMailbox(), newMailbox()];
  await send([box.address, other.address], message("number 0"), message("number 1"));
  await box.waitForMessages(2);
  for (const [listed, rest] of [[box, other], [other, box]]) {
    const [entry] = await collect(restante.messages({ mailbox: listed.name, limit: 1 }));
    assert.equal(entry.mailbox, listed.name);
    const mail = await restante.message(entry);
    assert.deepEqual([mail.id, mail.mailbox, mail.mailboxes, mail.recipients], [entry.id, listed.name, [listed.name], [listed.address]]);
    assert.equal((await mail.source()).length, mail.size);
    assert.match(new TextDecoder().decode(await mail.source()), new RegExp(`for <${listed.name}>`));
    await mail.markSeen();
    assert.equal((await listed.messages()).at(-1).seen, true);
    assert.ok((await rest.messages()).every(({ seen }) => !seen));
    await mail.markSeen(false);
    const before = (await rest.messages()).length;
    await mail.delete();
    await assert.rejects(mail.delete(), NotFound);
    assert.equal((await rest.messages()).length, before);
  }
  const [newest] = await collect(restante.messages({ limit: 1 }));
  assert.equal(newest.mailbox, undefined);
});

test("attachments of a message of all mailboxes", async () => {
  const box = newMailbox();
  await box.inject({ from: "a@example.org", subject: "file", attachments: [{ filename: "a.csv", content: btoa("a;b") }] });
  const mail = await restante.waitForMessage({ match: `mailbox:${box.name}` });
  assert.equal(mail.attachments[0].filename, "a.csv");
  assert.equal(new TextDecoder().decode(await mail.attachment(0)), "a;b");
});

test("inject", async () => {
  const box = newMailbox();
  const content = btoa("a;b");
  const mail = await box.inject({ from: "Änn <ann@example.org>", subject: "Grüße", text: "text", attachments: [{ filename: "a.csv", content }] });
  assert.equal(mail.subject, "Grüße");
  assert.equal(mail.from, "Änn <ann@example.org>");
  assert.equal(new TextDecoder().decode(await mail.attachment(0)), "a;b");
  const raw = await box.inject("Subject: raw\r\n\r\nas it is\r\n");
  assert.match(new TextDecoder().decode(await raw.source()), /\r\n\r\nas it is\r\n$/);
});

/** Returns an entry of the relay queue. */
function relayEntry(id, state) {
  return { id, message: "1794", recipients: [], state, attempts: 1, "last-reply": "450 later", transcript: [] };
}

/** Returns a client of a server with prepared responses: a list of bodies for each request, of which the last one is repeated. */
function relayClient(responses) {
  const requests = [];
  const fetch = async (url, { method, body }) => {
    requests.push(body);
    const bodies = responses[`${method} ${url.replace("http://relay.test/api/v2", "")}`];
    return Response.json(bodies.length > 1 ? bodies.shift() : bodies[0]);
  };
  return { client: new Restante({ url: "http://relay.test", fetch }), requests };
}

test("release and waitForRelay", async () => {
  const { client, requests } = relayClient({
    "POST /messages/1794/release": [relayEntry("7", "queued")],
    "GET /relay/entries/7": [relayEntry("7", "queued"), relayEntry("7", "sending"), relayEntry("7", "failed")],
    "GET /relay/entries/8": [relayEntry("8", "queued")],
  });
  const queued = await client.release({ id: "1794" }, { to: "qa@example.org", target: "main" });
  assert.equal(queued.state, "queued");
  assert.equal((await client.waitForRelay(queued)).state, "failed");
  await client.release("1794", { to: ["a@x.org", "b@x.org"] });
  await client.release("1794");
  assert.deepEqual(requests.filter(Boolean).map((body) => JSON.parse(body)), [
    { target: "main", to: ["qa@example.org"] },
    { to: ["a@x.org", "b@x.org"] },
    {},
  ]);
  const failure = await client.waitForRelay("8", { timeout: 0 }).catch((error) => error);
  assert.ok(failure instanceof WaitTimeout);
  assert.equal(failure.message, "relay entry 8 is still queued after 1 attempts: 450 later");
});

test("relayEntries and webhookEntries", async () => {
  const { client } = relayClient({
    "GET /relay/entries?message=1794&target=main&state=failed&limit=200": [{ entries: [relayEntry("9", "failed")], next: "5" }],
    "GET /relay/entries?message=1794&target=main&state=failed&before=5&limit=200": [{ entries: [], next: null }],
    "GET /relay/entries?limit=1": [{ entries: [relayEntry("9", "failed")], next: "9" }],
    "GET /webhooks/entries?state=failed&limit=200": [{ entries: [relayEntry("7", "failed")], next: null }],
  });
  const ids = async (filter) => (await collect(client.relayEntries(filter))).map(({ id }) => id);
  assert.deepEqual(await ids({ message: { id: "1794" }, target: "main", state: "failed" }), ["9"]);
  assert.deepEqual(await ids({ limit: 1 }), ["9"]);
  assert.deepEqual((await collect(client.webhookEntries({ state: "failed" }))).map(({ id }) => id), ["7"]);
});

test("release without targets", async () => {
  const box = newMailbox();
  await send(box.address, message());
  const failure = await restante.release(await box.waitForMessage(), { to: "qa@example.org" }).catch((error) => error);
  assert.ok(failure instanceof RestanteError);
  assert.equal(failure.status, 422);
  assert.deepEqual(await collect(restante.relayEntries()), []);
  await assert.rejects(restante.relayEntry("7"), NotFound);
});

test("no server", async () => {
  const unreachable = new Restante({ url: "http://ann:s3cret@127.0.0.1:9/" });
  const failure = await unreachable.mailbox("ann").messages().catch((error) => error);
  assert.ok(failure instanceof RestanteError);
  assert.match(failure.message, /the request to .* failed/);
  assert.doesNotMatch(failure.message, /s3cret/);
  assert.equal(failure.status, undefined);
});
