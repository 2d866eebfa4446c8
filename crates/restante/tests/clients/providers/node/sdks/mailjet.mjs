// npm node-mailjet, which always uses HTTPS

import assert from "node:assert/strict";
import Mailjet from "node-mailjet";
import { person } from "../messages.mjs";

export function connect(url, key) {
    const mailjet = new Mailjet({ apiKey: key, apiSecret: "secret", config: { host: new URL(url).host } });
    const people = (list) => list.map((one) => person(one, "Name", "Email"));
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => {
        const files = (isInline) => attachments.filter(({ cid }) => Boolean(cid) === isInline)
            .map(({ filename, type, content, cid }) =>
                ({ Filename: filename, ContentType: type, Base64Content: content, ...(cid && { ContentID: cid }) }));
        return {
            From: people([from])[0], To: people(to), Cc: people(cc), Bcc: people(bcc),
            ...(replyTo.length && { ReplyTo: people(replyTo)[0] }), Subject: subject, TextPart: text, HTMLPart: html,
            Attachments: files(false), InlinedAttachments: files(true),
        };
    };
    const send = async (messages) => {
        const { body } = await mailjet.post("send", { version: "v3.1" }).request({ Messages: messages.map(form) });
        assert.equal(body.Messages.length, messages.length);
        messages.forEach((message, index) => {
            const answer = body.Messages[index];
            assert.equal(answer.Status, "success");
            for (const [member, list] of [["To", message.to], ["Cc", message.cc], ["Bcc", message.bcc]]) {
                assert.deepEqual(answer[member].map(({ Email }) => Email), list.map(({ address }) => address));
                assert.ok(answer[member].every(({ MessageID, MessageUUID, MessageHref }) =>
                    /^\d+$/.test(MessageID) && MessageUUID && MessageHref));
            }
        });
    };
    return {
        send: (message) => send([message]),
        sendBatch: send,

        checkInvalid(error) {
            assert.equal(error.statusCode, 400);
            const [{ Status, Errors: [{ ErrorCode, StatusCode, ErrorRelatedTo }] }] = error.response.data.Messages;
            assert.deepEqual([Status, StatusCode], ["error", 400]);
            assert.match(ErrorCode, /^mj-\d{4}$/);
            assert.match(ErrorRelatedTo[0], /^To/);
        },

        checkRefused(error) {
            assert.equal(error.statusCode, 401);
            assert.ok(error.ErrorMessage);
        },
    };
}
