// npm resend

import assert from "node:assert/strict";
import { Resend } from "resend";
import { format } from "../messages.mjs";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function connect(url, key) {
    const resend = new Resend(key, { baseUrl: url });
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => ({
        from: format(from), to: to.map(format), cc: cc.map(format), bcc: bcc.map(format), replyTo: replyTo.map(format),
        subject, text, html,
        attachments: attachments.map(({ filename, type, content, cid }) => ({
            filename, content: Buffer.from(content, "base64"), contentType: type, contentId: cid,
        })),
    });
    /** Returns the data of a response. The SDK returns errors. */
    const dataOf = async (request) => {
        const { data, error } = await request;
        if (error) throw error;
        return data;
    };
    return {
        async send(message) {
            const { id } = await dataOf(resend.emails.send(form(message), { idempotencyKey: message.name }));
            assert.match(id, uuid);
            const email = await dataOf(resend.emails.get(id));
            assert.deepEqual([email.object, email.id, email.subject], ["email", id, message.subject]);
        },

        async sendBatch(messages) {
            const { data } = await dataOf(resend.batch.send(messages.map(form)));
            assert.equal(new Set(data.map(({ id }) => id)).size, messages.length);
        },

        async sendTemplate(message) {
            const { id } = await dataOf(resend.templates.create({
                name: "order", alias: "order", subject: "Order {{{number}}}",
                text: "Hello {{{name}}}, order {{{number}}} is on its way.",
                html: "<p>Hello {{{name}}}, order <b>{{{number}}}</b> is on its way.</p>",
                variables: [{ key: "name", type: "string" }, { key: "number", type: "number" }],
            }).publish());
            const { from, to } = form(message);
            await dataOf(resend.emails.send({ from, to, template: { id, variables: { name: "Bob", number: 42 } } }));
        },

        checkInvalid(error) {
            assert.deepEqual([error.name, error.statusCode], ["validation_error", 422]);
            assert.match(error.message, /to/);
        },

        checkRefused(error) {
            assert.deepEqual([error.name, error.statusCode], ["invalid_api_key", 403]);
        },
    };
}
