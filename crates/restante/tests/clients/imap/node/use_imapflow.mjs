// Uses the server with imapflow. ../run.py sets the environment variables.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";

import { ImapFlow } from "imapflow";
import nodemailer from "nodemailer";

const { IMAP_HOST: host, IMAP_USER: user, IMAP_PASSWORD: pass, IMAP_TOKEN: accessToken } = process.env;
const { IMAP_SOURCES: folder, SMTP_PORT } = process.env;
const port = Number(process.env.IMAP_PORT);
const sources = await Promise.all((await readdir(folder)).sort().map((name) => readFile(`${folder}/${name}`)));
const DAY = 86_400_000;

const connect = async (auth) => {
    const client = new ImapFlow({ host, port, secure: false, doSTARTTLS: false, auth: { user, ...auth }, logger: false });
    await client.connect();
    return client;
};

const client = await connect({ pass });
assert(client.capabilities.has("IMAP4rev1"));
assert.deepEqual([client.namespace.prefix, client.namespace.delimiter], ["", "/"]);
const inbox = (await client.list({ statusQuery: { messages: true, unseen: true } })).find((entry) => entry.path === "INBOX");
assert.equal(inbox.specialUse, "\\Inbox");
assert.deepEqual([inbox.status.messages, inbox.status.unseen], [5, 5]);

// The messages.
const mailbox = await client.mailboxOpen("INBOX");
assert.deepEqual([mailbox.exists, mailbox.readOnly], [5, false]);
const query = {
    uid: true, flags: true, bodyStructure: true, envelope: true, internalDate: true, size: true, source: true,
    headers: ["subject", "x-test"], bodyParts: ["1", "1.1", "2", "text", "3.header"], threadId: true, labels: true,
};
const messages = await client.fetchAll("1:*", query);
assert.deepEqual(messages.map((message) => message.seq), [1, 2, 3, 4, 5]);
const uids = messages.map((message) => message.uid);
for (const [index, message] of messages.entries()) {
    assert(message.source.equals(sources[index]), `source ${index + 1}`);
    assert.equal(message.size, sources[index].length);
    assert(Math.abs(message.internalDate - Date.now()) < DAY);
    assert(!message.flags.has("\\Seen"));
}
const subjects = (messages) => messages.map((message) => message.envelope.subject);
assert.deepEqual(subjects(messages), ["Invoice 1001", "Grüße aus Köln", "Parts", "Large", "Empty"]);
const [first, second, third] = messages;
assert.deepEqual(first.envelope.to.map((entry) => entry.address), ["ben@y.org", "carl@y.org"]);
assert.equal(first.envelope.messageId, "<1@x.org>");
assert.equal(first.envelope.date.toISOString(), "2024-03-01T08:00:00.000Z");
assert.equal(second.envelope.from[0].name, "Jörg");
assert.equal(third.envelope.inReplyTo, "<1@x.org>");
assert.equal(third.bodyStructure.type, "multipart/mixed");
const types = third.bodyStructure.childNodes.map((node) => node.type);
assert.deepEqual(types, ["multipart/alternative", "application/octet-stream", "message/rfc822"]);
assert.equal(third.bodyStructure.childNodes[1].dispositionParameters.filename, "data.bin");
assert.equal(third.bodyStructure.childNodes[2].envelope.subject, "Nested");
assert.equal(third.bodyParts.get("1.1").toString(), "Caf=C3=A9");
assert.match(third.bodyParts.get("3.header").toString(), /^From: Carl/);
assert.match(third.headers.toString(), /^(Subject: Parts\r\nX-Test: a value|X-Test: a value\r\nSubject: Parts)\r\n\r\n$/);
const slice = await client.fetchOne(String(uids[3]), { source: { start: 1000, maxLength: 50 } }, { uid: true });
assert(slice.source.equals(sources[3].subarray(1000, 1050)));

// Downloads decode the content.
const { meta, content } = await client.download(String(uids[2]), "2", { uid: true });
assert.equal(meta.filename, "data.bin");
assert((await buffer(content)).equals(Uint8Array.from(Array(32).keys())));
const large = await client.download(String(uids[3]), undefined, { uid: true, chunkSize: 8192 });
assert((await buffer(large.content)).equals(sources[3]));
const parts = await client.downloadMany(String(uids[2]), ["1.1", "1.2"], { uid: true });
assert.equal(parts["1.1"].content.toString(), "Café");

// Searches.
const searches = [
    [{ all: true }, [1, 2, 3, 4, 5]],
    [{ seen: false }, [1, 2, 3, 4, 5]],
    [{ from: "ann lee" }, [1, 3]],
    [{ subject: "Grüße" }, [2]],
    [{ body: "Käse" }, [2]],
    [{ text: "first mail" }, [1]],
    [{ header: { "x-test": "value" } }, [3]],
    [{ header: { "x-test": true } }, [3]],
    [{ since: new Date(Date.now() - DAY) }, [1, 2, 3, 4, 5]],
    [{ before: new Date(Date.now() - DAY) }, []],
    [{ sentOn: new Date("2024-03-04T00:00:00Z") }, [4]],
    [{ larger: 100_000 }, [4]],
    [{ or: [{ cc: "dora" }, { subject: "empty" }] }, [1, 5]],
    [{ not: { from: "ann" }, uid: uids.join(",") }, [2]],
];
for (const [criteria, expected] of searches) {
    const found = await client.search(criteria, { uid: true });
    assert.deepEqual(found, expected.map((number) => uids[number - 1]), JSON.stringify(criteria));
}

// Flags and keywords.
const one = (uid) => String(uid);
assert(await client.messageFlagsAdd(one(uids[0]), ["\\Flagged", "$Forwarded", "work"], { uid: true }));
assert(await client.messageFlagsRemove(one(uids[0]), ["work"], { uid: true }));
assert(await client.messageFlagsSet(one(uids[1]), ["\\Seen", "\\Answered"], { uid: true, silent: true }));
const flags = async (uid) => {
    const message = await client.fetchOne(one(uid), { flags: true }, { uid: true });
    return [...message.flags].filter((flag) => flag !== "\\Recent").sort();
};
assert.deepEqual(await flags(uids[0]), ["$Forwarded", "\\Flagged"]);
assert.deepEqual(await flags(uids[1]), ["\\Answered", "\\Seen"]);
assert.deepEqual(await client.search({ keyword: "$Forwarded" }, { uid: true }), [uids[0]]);

// Folders.
const PATH = "Archiv/Entwürfe & mehr";
assert((await client.mailboxCreate(["Archiv", "Entwürfe & mehr"])).created);
assert(!(await client.mailboxCreate(PATH)).created);
assert(await client.mailboxSubscribe(PATH));
const created = (await client.list()).find((entry) => entry.path === PATH);
assert.deepEqual([created.subscribed, created.parentPath, created.name], [true, "Archiv", "Entwürfe & mehr"]);
assert(await client.mailboxUnsubscribe(PATH));
assert.equal((await client.mailboxRename(PATH, "Archiv/2024")).newPath, "Archiv/2024");
await assert.rejects(client.mailboxOpen("Missing"));

// APPEND, COPY, MOVE, delete. The mailbox has been closed by the failed SELECT.
const appended = Buffer.from("Subject: Appended\r\n\r\n\xe4 \xff\r\n", "latin1");
const { uid, destination } = await client.append("Archiv/2024", appended, ["\\Draft"], new Date("2020-12-13T13:36:36Z"));
assert.equal(destination, "Archiv/2024");
await client.mailboxOpen("INBOX");
const copied = await client.messageCopy(`${uids[0]},${uids[1]}`, "Archiv/2024", { uid: true });
assert.deepEqual([...copied.uidMap.keys()], uids.slice(0, 2));
const moved = await client.messageMove(one(uids[2]), "Archiv/2024", { uid: true });
assert.deepEqual([...moved.uidMap.keys()], [uids[2]]);
assert(await client.messageDelete(one(uids[4]), { uid: true }));
assert.deepEqual(await client.search({ all: true }, { uid: true }), [uids[0], uids[1], uids[3]]);
const status = await client.status("Archiv/2024", { messages: true, uidNext: true, uidValidity: true, unseen: true });
assert.deepEqual([status.messages, status.unseen], [4, 3]);
const lock = await client.getMailboxLock("Archiv/2024", { readOnly: true });
const copies = await client.fetchAll("1:*", { source: true, internalDate: true, flags: true });
assert(copies[0].uid === uid && copies[0].source.equals(appended) && copies[0].flags.has("\\Draft"));
assert.equal(copies[0].internalDate.toISOString(), "2020-12-13T13:36:36.000Z");
assert(copies.slice(1).every((copy, index) => copy.source.equals(sources[index])));
lock.release();
const quota = await client.getQuota("INBOX");
assert(quota === false || quota.path === "INBOX", JSON.stringify(quota));

// IDLE with a message that arrives, and with one that another session deletes.
await client.mailboxOpen("INBOX");
const exists = once(client, "exists");
const idle = client.idle();
const smtp = nodemailer.createTransport({ host, port: Number(SMTP_PORT), secure: false, ignoreTLS: true });
await smtp.sendMail({ from: "ann@x.org", to: `${user}@example.org`, subject: "Idle", text: "Hi" });
assert.equal((await exists)[0].count, 4);
const other = await connect({ pass });
await other.mailboxOpen("INBOX");
const expunge = once(client, "expunge");
assert(await other.messageDelete(one(uids[0]), { uid: true }));
await expunge;
await other.logout();
await client.noop();
await idle;
assert.deepEqual(subjects(await client.fetchAll("1:*", { envelope: true })), ["Grüße aus Köln", "Large", "Idle"]);

for (const path of ["Archiv/2024", "Archiv"]) {
    if ((await client.list()).some((entry) => entry.path === path)) {
        assert.equal((await client.mailboxDelete(path)).path, path);
    }
}
assert(!(await client.list()).some((entry) => entry.path.startsWith("Archiv")));
await client.logout();

const withToken = await connect({ accessToken });
assert.equal((await withToken.mailboxOpen("INBOX", { readOnly: true })).exists, 3);
await withToken.logout();
