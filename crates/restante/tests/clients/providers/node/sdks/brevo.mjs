// npm @getbrevo/brevo

import assert from "node:assert/strict";
import { Brevo, BrevoClient } from "@getbrevo/brevo";
import { person } from "../messages.mjs";

export function connect(url, key) {
    const client = new BrevoClient({ apiKey: key, baseUrl: `${url}/v3`, maxRetries: 0 });
    const people = (list) => list.length ? list.map((one) => person(one, "name", "email")) : undefined;
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => ({
        sender: people([from])[0], to: people(to), cc: people(cc), bcc: people(bcc), replyTo: people(replyTo)?.[0],
        subject, textContent: text, htmlContent: html,
        attachment: attachments.length ? attachments.map(({ filename, content }) => ({ name: filename, content })) : undefined,
    });
    const send = (request) => client.transactionalEmails.sendTransacEmail(request);
    return {
        hasInlineImages: false,

        send: async (message) => assert.match((await send(form(message))).messageId, /^<[\w.-]+@[\w.-]+>$/),

        async sendBatch(messages) {
            const { to, ...first } = form(messages[0]);
            const { messageIds } = await send({ ...first, messageVersions: messages.map(({ to }) => ({ to: people(to) })) });
            assert.equal(new Set(messageIds).size, messages.length);
        },

        checkInvalid(error) {
            assert.ok(error instanceof Brevo.BadRequestError, error);
            assert.deepEqual([error.statusCode, error.body.code], [400, "invalid_parameter"]);
            assert.match(error.body.message, /to/);
        },

        checkRefused(error) {
            assert.deepEqual([error.statusCode, error.body.code], [401, "unauthorized"]);
        },
    };
}
