// npm @sendgrid/mail

import assert from "node:assert/strict";
import { Client } from "@sendgrid/client";
import { MailService } from "@sendgrid/mail";
import { person } from "../messages.mjs";

export function connect(url, key) {
    const client = new Client();
    client.setApiKey(`SG.${key}`);
    client.setDefaultRequest("baseUrl", `${url}/`);
    const service = new MailService();
    service.setClient(client);
    const people = (list) => list.map((one) => person(one, "name", "email"));
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => ({
        from: people([from])[0], to: people(to), cc: people(cc), bcc: people(bcc),
        ...(replyTo.length && { replyToList: people(replyTo) }), subject, text, html,
        attachments: attachments.map(({ filename, type, content, cid }) => ({
            content, filename, type, disposition: cid ? "inline" : "attachment", ...(cid && { content_id: cid }),
        })),
    });
    const checkSent = ([{ statusCode, headers, body }]) => {
        assert.equal(statusCode, 202);
        assert.equal(body, "");
        assert.match(headers["x-message-id"], /^[\w.-]+$/);
    };
    const create = async (path, body) => {
        const [answer, data] = await client.request({ method: "POST", url: path, body });
        assert.equal(answer.statusCode, 201);
        return data;
    };
    return {
        send: async (message) => checkSent(await service.send(form(message))),

        /** One request with a personalization for each message. */
        async sendBatch(messages) {
            const { from, subject, text, html } = form(messages[0]);
            const personalizations = messages.map(({ to }) => ({ to: people(to) }));
            checkSent(await service.send({ from, subject, text, html, personalizations }));
        },

        async sendTemplate(message) {
            const { id } = await create("/v3/templates", { name: "order", generation: "dynamic" });
            assert.match(id, /^d-/);
            await create(`/v3/templates/${id}/versions`, {
                name: "first", active: 1, subject: "Order {{number}}",
                plain_content: "Hello {{name}}, order {{number}} is on its way.",
                html_content: "<p>Hello {{name}}, order <b>{{number}}</b> is on its way.</p>",
            });
            const { from, to } = form(message);
            checkSent(await service.send({ from, to, templateId: id, dynamicTemplateData: { name: "Bob", number: 42 } }));
        },

        checkInvalid(error) {
            assert.equal(error.code, 400);
            const [{ message, field }] = error.response.body.errors;
            assert.match(field, /^personalizations\.0\.to/);
            assert.equal(typeof message, "string");
        },

        checkRefused(error) {
            assert.equal(error.code, 401);
            assert.equal(error.response.body.errors.length, 1);
        },
    };
}
