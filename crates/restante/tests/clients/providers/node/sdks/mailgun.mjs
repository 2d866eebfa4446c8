// npm mailgun.js

import assert from "node:assert/strict";
import Mailgun from "mailgun.js";
import { format, mime } from "../messages.mjs";

const domain = "example.test";

export function connect(url, key) {
    const mailgun = new Mailgun(FormData).client({ username: "api", key, url });
    const create = async (data) => {
        const answer = await mailgun.messages.create(domain, data);
        assert.deepEqual([answer.status, answer.message], [200, "Queued. Thank you."]);
        assert.match(answer.id, /^<[\w.-]+@[\w.-]+>$/);
    };
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => {
        const files = (isInline) => attachments.filter(({ cid }) => Boolean(cid) === isInline)
            .map(({ filename, content, type, cid }) =>
                ({ filename: cid ?? filename, data: Buffer.from(content, "base64"), contentType: type }));
        return {
            from: format(from), to: to.map(format), cc: cc.map(format), bcc: bcc.map(format), subject, text, html,
            ...(replyTo.length && { "h:Reply-To": replyTo.map(format).join(", ") }),
            attachment: files(false), inline: files(true),
        };
    };
    return {
        send: (message) => create(form(message)),

        /** The first two as one message with variables of the recipients, the third one as MIME. */
        async sendBatch([first, second, third]) {
            const to = [...first.to, ...second.to];
            const variables = Object.fromEntries(to.map(({ address }) => [address, { name: "Bob" }]));
            await create({
                ...form({ ...first, to, text: first.text.replace("Bob", "%recipient.name%") }),
                "recipient-variables": JSON.stringify(variables),
            });
            await create({ to: third.to.map(format), message: await mime(third) });
        },

        checkInvalid(error) {
            assert.deepEqual([error.type, error.status], ["MailgunAPIError", 400]);
            assert.match(error.details, /to/);
        },

        checkRefused(error) {
            assert.deepEqual([error.status, error.details], [401, "Forbidden"]);
        },
    };
}
