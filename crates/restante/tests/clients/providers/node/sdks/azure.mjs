// npm @azure/communication-email

import assert from "node:assert/strict";
import { EmailClient } from "@azure/communication-email";

export function connect(url, key) {
    const connection = `endpoint=${url}/;accesskey=${Buffer.from(key).toString("base64")}`;
    const client = new EmailClient(connection, { allowInsecureConnection: true });
    const people = (list) => list.map(({ name, address }) => ({ address, ...(name && { displayName: name }) }));
    return {
        async send({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) {
            const poller = await client.beginSend({
                senderAddress: from.address,
                content: { subject, plainText: text, html },
                recipients: { to: people(to), cc: people(cc), bcc: people(bcc) },
                replyTo: people(replyTo),
                attachments: attachments.map(({ filename, type, content, cid }) => ({
                    name: filename, contentType: type, contentInBase64: content, ...(cid && { contentId: cid }),
                })),
            }, { updateIntervalInMs: 10 });
            const result = await poller.pollUntilDone();
            assert.equal(result.status, "Succeeded");
            assert.match(result.id, /^[0-9a-f-]{36}$/);
        },

        checkInvalid(error) {
            assert.deepEqual([error.name, error.statusCode], ["RestError", 400]);
            assert.equal(error.code, "BadRequest");
            assert.match(error.message, /to/);
        },

        checkRefused(error) {
            assert.deepEqual([error.statusCode, error.code], [401, "Denied"]);
        },
    };
}
