// The API with the client `mailpit-api`. The cases are those of the end-to-end tests of its repository that need a server, with
// values where those check only types. The cases about events are in events.test.mjs.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, describe, test } from "node:test";
import { MailpitClient } from "mailpit-api";
import { assertShape, auth, list, picture, url } from "./server.mjs";

const mailpit = new MailpitClient(url, { auth });

const html = '<div style="text-align:center"><p>An <b>example</b></p>\n<p><img src="cid:inline-picture"></p></div>\n'
    + '<p><a href="https://example.test">Link</a></p>';
const mail = {
    From: { Email: "ann@example.test", Name: "Ann" },
    To: [{ Email: "bob@example.test", Name: "Bob" }],
    Cc: [{ Email: "cid@example.test", Name: "Cid" }],
    Bcc: ["dan@example.test"],
    ReplyTo: [{ Email: "noreply@example.test", Name: "No Reply" }],
    Subject: "Mail with attachments",
    Text: "This mail has attachments.",
    HTML: html,
    Headers: { "List-Unsubscribe": "<mailto:leave@example.test>, <https://example.test/leave>" },
    Attachments: [
        { Content: picture.toString("base64"), Filename: "picture.png" },
        {
            Content: picture.toString("base64"), Filename: "inline.png", ContentID: "inline-picture",
            ContentType: "image/png",
        },
    ],
};

let id;

before(async () => {
    await mailpit.deleteMessages();
    id = (await mailpit.sendMessage(mail)).ID;
});

test("sendMessage returns an id", () => assert.match(id, /^[0-9A-Za-z]+$/));

test("getInfo", async () => {
    const info = await mailpit.getInfo();
    assertShape(info, {
        Version: String, LatestVersion: String, Database: String, DatabaseSize: Number, Messages: 1, Unread: Number, Tags: {},
        RuntimeStats: {
            Uptime: Number, Memory: Number, MessagesDeleted: Number, SMTPAccepted: Number, SMTPAcceptedSize: Number,
            SMTPRejected: Number, SMTPIgnored: Number,
        },
    });
});

test("getConfiguration", async () => {
    assertShape(await mailpit.getConfiguration(), {
        Label: String, SpamAssassin: false, ChaosEnabled: true, DuplicatesIgnored: false, HideDeleteAllButton: false,
        MessageRelay: {
            Enabled: false, SMTPServer: "", ReturnPath: "", AllowedRecipients: "", BlockedRecipients: "", OverrideFrom: "",
            PreserveMessageIDs: false, RecipientAllowlist: "",
        },
    });
});

describe("one message", () => {
    const digest = (algorithm) => createHash(algorithm).update(picture).digest("hex");
    const attachment = {
        PartID: String, FileName: String, ContentType: "image/png", ContentID: String, Size: picture.length,
        Checksums: { MD5: digest("md5"), SHA1: digest("sha1"), SHA256: digest("sha256") },
    };

    for (const latest of [true, false]) {
        const name = latest ? "the latest message" : "a message by id";
        const which = () => latest ? [] : [id];

        test(`getMessageSummary of ${name}`, async () => {
            const message = await mailpit.getMessageSummary(...which());
            assertShape(message, {
                ID: id, MessageID: String, From: { Name: "Ann", Address: "ann@example.test" },
                To: [{ Name: "Bob", Address: "bob@example.test" }], Cc: [{ Name: "Cid", Address: "cid@example.test" }],
                Bcc: [{ Name: "", Address: "dan@example.test" }],
                ReplyTo: [{ Name: "No Reply", Address: "noreply@example.test" }],
                ReturnPath: "ann@example.test", Subject: mail.Subject, Date: String, Tags: Object, Username: auth.username,
                Text: mail.Text, HTML: html, Size: Number, Inline: [attachment], Attachments: [attachment],
                ListUnsubscribe: {
                    Header: mail.Headers["List-Unsubscribe"], HeaderPost: "", Errors: "",
                    Links: Object,
                },
            });
            assert.deepEqual(message.ListUnsubscribe.Links, ["mailto:leave@example.test", "https://example.test/leave"]);
            assert.deepEqual([message.Attachments[0].FileName, message.Inline[0].FileName], ["picture.png", "inline.png"]);
            assert.deepEqual([message.Attachments[0].ContentID, message.Inline[0].ContentID], ["", "inline-picture"]);
            assert.deepEqual(message.Tags, []);
            assert.ok(!Number.isNaN(Date.parse(message.Date)), message.Date);
        });

        test(`getMessageHeaders of ${name}`, async () => {
            const headers = await mailpit.getMessageHeaders(...which());
            assert.deepEqual(Object.keys(headers), ["Bcc", "Cc", "Content-Type", "Date", "From", "List-Unsubscribe", "Message-Id",
                "Mime-Version", "Reply-To", "Return-Path", "Subject", "To"]);
            Object.values(headers).forEach((values) => assertShape(values, [String]));
            assert.deepEqual(headers.Bcc, ["dan@example.test"]);
            assert.deepEqual(headers.Subject, [mail.Subject]);
        });

        test(`getMessageSource of ${name}`, async () => {
            const source = await mailpit.getMessageSource(...which());
            assert.match(source, /^Subject: Mail with attachments\r$/m);
        });

        test(`htmlCheck of ${name}`, async () => {
            const check = await mailpit.htmlCheck(...which());
            assertShape(check.Total, { Nodes: Number, Partial: Number, Supported: Number, Tests: Number, Unsupported: Number });
            assertShape(check.Platforms, Object);
            assertShape(check.Warnings, [{
                Slug: String, Title: String, Description: String, URL: String, Category: String, Tags: Object,
                Keywords: String, NotesByNumber: Object,
                Results: [{ Family: String, Name: String, NoteNumber: String, Platform: String, Support: String, Version: String }],
                Score: { Found: Number, Partial: Number, Supported: Number, Unsupported: Number },
            }]);
        });

        test(`renderMessageHTML of ${name}`, async () => {
            const rendered = await mailpit.renderMessageHTML(...which());
            assert.ok(rendered.includes('<p><a href="https://example.test">Link</a></p>'), rendered);
            // The picture is a part of the message.
            assert.match(rendered, new RegExp(`src="[^"]*/api/v1/message/${id}/part/`));
        });

        test(`renderMessageText of ${name}`, async () => {
            assert.equal(await mailpit.renderMessageText(...which()), mail.Text);
        });
    }

    test("renderMessageHTML for a frame", async () => {
        const rendered = await mailpit.renderMessageHTML(id, 1);
        assert.match(rendered, /target="_blank" rel="noreferrer noopener"/);
    });

    test("renderMessageHTML of HTML without parts of the message", async () => {
        const absent = html.replace("inline-picture", "absent");
        const sent = await mailpit.sendMessage({ From: mail.From, To: mail.To, HTML: absent });
        assert.ok((await mailpit.renderMessageHTML(sent.ID)).includes(absent));
        assert.ok(!(await mailpit.renderMessageHTML(sent.ID, 1)).includes(absent));
        await mailpit.deleteMessages({ IDs: [sent.ID] });
    });

    test("linkCheck", async () => {
        for (const check of [await mailpit.linkCheck(), await mailpit.linkCheck(id), await mailpit.linkCheck(id, true)]) {
            assertShape(check, { Errors: Number, Links: [{ URL: String, Status: String, StatusCode: Number }] });
            assert.ok(check.Links.some((link) => link.URL.startsWith("https://example.test")), JSON.stringify(check));
        }
    });

    test("getMessageAttachment", async () => {
        const message = await mailpit.getMessageSummary(id);
        for (const { PartID } of [...message.Attachments, ...message.Inline]) {
            const part = await mailpit.getMessageAttachment(id, PartID);
            assert.equal(part.type, "image/png");
            assert.deepEqual(Buffer.from(await part.arrayBuffer()), picture);
        }
    });

    test("getAttachmentThumbnail", async () => {
        const { Attachments: [{ PartID }] } = await mailpit.getMessageSummary(id);
        const thumbnail = await mailpit.getAttachmentThumbnail(id, PartID);
        assert.equal(thumbnail.type, "image/jpeg");
        const bytes = Buffer.from(await thumbnail.arrayBuffer());
        assert.equal(bytes.subarray(0, 2).toString("hex"), "ffd8");
        assert.deepEqual(jpegSize(bytes), { width: 180, height: 120 });
    });

    test("spamAssassinCheck and releaseMessage are not configured", async () => {
        await assert.rejects(mailpit.spamAssassinCheck(id), /Mailpit API Error: 4\d\d /);
        await assert.rejects(mailpit.releaseMessage(id, { To: ["eve@example.test"] }), /Mailpit API Error: 400 /);
    });
});

describe("lists", () => {
    test("listMessages", async () => {
        for (const page of [[], [0, 10]]) {
            const response = await mailpit.listMessages(...page);
            assertShape(response, list);
            assert.deepEqual([response.total, response.count, response.start], [1, 1, 0]);
            assert.deepEqual([response.messages[0].ID, response.messages[0].Attachments], [id, 1]);
        }
        const beyond = await mailpit.listMessages(10, 10);
        assert.deepEqual([beyond.total, beyond.start, beyond.messages], [1, 10, []]);
    });

    test("setReadStatus by id, by search, and of all", async () => {
        const unread = async () => (await mailpit.listMessages()).unread;
        assert.equal(await mailpit.setReadStatus({ IDs: [id], Read: false }), "ok");
        assert.equal(await unread(), 1);
        assert.equal(await mailpit.setReadStatus({ Search: "from:ann@example.test", Read: true }), "ok");
        assert.equal(await unread(), 0);
        assert.equal(await mailpit.setReadStatus(), "ok");
        assert.equal(await unread(), 1);
        assert.equal(await mailpit.setReadStatus({ Search: "after:2025-04-30", Read: true }, { tz: "America/Chicago" }), "ok");
        assert.equal(await unread(), 0);
        await assert.rejects(mailpit.setReadStatus({ IDs: [id], Search: "x" }), /Mailpit API Error: 400 /);
    });

    test("searchMessages", async () => {
        // Without quotation marks, only the first word is that of the subject.
        for (const query of [`subject:"${mail.Subject}"`, `subject:${mail.Subject}`]) {
            const found = await mailpit.searchMessages({ query, start: 0, limit: 10 });
            assertShape(found, list);
            assert.deepEqual([found.messages_count, found.messages[0].ID], [1, id]);
        }
        const none = await mailpit.searchMessages({ query: "subject:absent" });
        assert.deepEqual([none.total, none.messages_count, none.messages], [1, 0, []]);
    });

    test("waitForMessage and waitForMessages", async () => {
        const message = await mailpit.waitForMessage({ query: "to:bob@example.test" });
        assert.equal(message.ID, id);
        const found = await mailpit.waitForMessages({ count: 1, exact: true });
        assert.equal(found.messages[0].ID, id);
        const none = await mailpit.waitForMessages({ query: "subject:absent", count: 0 });
        assert.deepEqual(none.messages, []);
    });
});

test("tags are set, renamed, listed and deleted", async () => {
    const tags = async () => (await mailpit.getMessageSummary(id)).Tags;
    assert.equal(await mailpit.setTags({ IDs: [id], Tags: ["first tag", "b"] }), "ok");
    assert.deepEqual(await tags(), ["b", "first tag"]);
    assert.equal(await mailpit.renameTag("first tag", "renamed tag"), "ok");
    assert.deepEqual(await mailpit.getTags(), ["b", "renamed tag"]);
    assert.deepEqual((await mailpit.searchMessages({ query: 'tag:"renamed tag"' })).messages_count, 1);
    assert.equal(await mailpit.deleteTag("renamed tag"), "ok");
    assert.deepEqual(await tags(), ["b"]);
    assert.equal(await mailpit.setTags({ IDs: [id] }), "ok");
    assert.deepEqual(await mailpit.getTags(), []);
});

test("chaos triggers are set and reset", async () => {
    const triggers = {
        Authentication: { ErrorCode: 451, Probability: 5 },
        Recipient: { ErrorCode: 452, Probability: 10 },
        Sender: { ErrorCode: 453, Probability: 15 },
    };
    assert.deepEqual(await mailpit.setChaosTriggers(triggers), triggers);
    assert.deepEqual(await mailpit.getChaosTriggers(), triggers);
    await mailpit.setChaosTriggers();
    const probabilities = Object.values(await mailpit.getChaosTriggers()).map((trigger) => trigger.Probability);
    assert.deepEqual(probabilities, [0, 0, 0]);
});

test("messages are deleted by search, by id, and all", async () => {
    const count = async () => (await mailpit.listMessages()).total;
    assert.equal(await mailpit.deleteMessagesBySearch({ query: `subject:"${mail.Subject}"` }), "ok");
    assert.equal(await count(), 0);
    const [first] = [await mailpit.sendMessage(mail), await mailpit.sendMessage(mail)];
    assert.equal(await mailpit.deleteMessages({ IDs: [first.ID] }), "ok");
    assert.equal(await count(), 1);
    assert.equal(await mailpit.deleteMessages(), "ok");
    assert.equal(await count(), 0);
});

describe("errors", () => {
    const anonymous = new MailpitClient(url, { auth: { username: "nobody", password: "wrong" } });

    test("wrong password", () => assert.rejects(anonymous.getInfo(), /401 Unauthorized/));
    test("unknown message", async () => {
        await assert.rejects(mailpit.getMessageSummary("1234567890"), /Mailpit API Error: 404 /);
        await assert.rejects(mailpit.getMessageSource("1234567890"), /Mailpit API Error: 404 /);
    });
    test("message without a sender", () => assert.rejects(mailpit.sendMessage({ To: mail.To }), /Mailpit API Error: 400 .*Error/));
});

/** Returns the width and the height in the first frame header of a JPEG image. */
function jpegSize(bytes) {
    for (let at = 2; at < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
        const marker = bytes[at + 1];
        if (marker >= 0xc0 && marker <= 0xc2) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
    return assert.fail("the image has no frame header");
}
