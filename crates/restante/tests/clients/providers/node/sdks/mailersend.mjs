// npm mailersend

import assert from "node:assert/strict";
import { Attachment, EmailParams, MailerSend, Recipient, Sender } from "mailersend";

export function connect(url, apiKey) {
    const { email } = new MailerSend({ apiKey });
    // The constructor has no option for it.
    email.baseUrl = `${url}/v1/`;
    const people = (list) => list.map(({ name, address }) => new Recipient(address, name || undefined));
    const form = ({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) => {
        const params = new EmailParams()
            .setFrom(new Sender(from.address, from.name)).setTo(people(to)).setCc(people(cc)).setBcc(people(bcc))
            .setSubject(subject).setText(text).setHtml(html)
            .setAttachments(attachments.map(({ content, filename, cid }) =>
                new Attachment(content, filename, cid ? "inline" : "attachment", cid)));
        return replyTo.length ? params.setReplyTo(people(replyTo)[0]) : params;
    };
    return {
        async send(message) {
            const { statusCode, headers } = await email.send(form(message));
            assert.equal(statusCode, 202);
            assert.match(headers["x-message-id"], /^\w+$/);
        },

        async sendBatch(messages) {
            const { statusCode, body } = await email.sendBulk(messages.map(form));
            assert.equal(statusCode, 202);
            assert.match(body.bulk_email_id, /^\w+$/);
            const status = await email.getBulkStatus(body.bulk_email_id);
            assert.deepEqual([status.body.data.id, status.body.data.state], [body.bulk_email_id, "completed"]);
        },

        checkInvalid({ statusCode, body }) {
            assert.equal(statusCode, 422);
            assert.ok(body.message);
            assert.match(Object.keys(body.errors)[0], /^to/);
        },

        checkRefused({ statusCode, body }) {
            assert.deepEqual([statusCode, body.message], [401, "Unauthenticated."]);
        },
    };
}
