// npm postmark

import assert from "node:assert/strict";
import { Errors, ServerClient } from "postmark";
import { format } from "../messages.mjs";

export function connect(url, key) {
    const { host, protocol } = new URL(url);
    const client = new ServerClient(key, { requestHost: host, useHttps: protocol === "https:" });
    const list = (people) => people.map(format).join(", ");
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => ({
        From: format(from), To: list(to), Cc: list(cc), Bcc: list(bcc), ReplyTo: list(replyTo), Subject: subject,
        TextBody: text, HtmlBody: html,
        Attachments: attachments.map(({ filename, type, content, cid }) => ({
            Name: filename, Content: content, ContentType: type, ContentID: cid ? `cid:${cid}` : null,
        })),
    });
    const checkSent = (answer, message) => {
        assert.deepEqual([answer.ErrorCode, answer.Message, answer.To], [0, "OK", list(message.to)]);
        assert.match(answer.MessageID, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        assert.ok(new Date(answer.SubmittedAt) > new Date("2026-01-01"));
    };
    return {
        send: async (message) => checkSent(await client.sendEmail(form(message)), message),

        async sendBatch(messages) {
            const answers = await client.sendEmailBatch(messages.map(form));
            assert.equal(answers.length, messages.length);
            messages.forEach((message, index) => checkSent(answers[index], message));
        },

        async sendTemplate(message) {
            const { TemplateId } = await client.createTemplate({
                Name: "Order", Alias: "order", Subject: "Order {{number}}",
                TextBody: "Hello {{name}}, order {{number}} is on its way.",
                HtmlBody: "<p>Hello {{name}}, order <b>{{number}}</b> is on its way.</p>",
            });
            assert.equal((await client.getTemplate("order")).TemplateId, TemplateId);
            const { From, To } = form(message);
            const TemplateModel = { name: "Bob", number: 42 };
            checkSent(await client.sendEmailWithTemplate({ From, To, TemplateId, TemplateModel }), message);
        },

        checkInvalid(error) {
            assert.ok(error instanceof Errors.InvalidEmailRequestError, error);
            assert.deepEqual([error.code, error.statusCode], [300, 422]);
            assert.match(error.message, /To/);
        },

        checkRefused(error) {
            assert.ok(error instanceof Errors.InvalidAPIKeyError, error);
            assert.equal(error.code, 10);
        },
    };
}
