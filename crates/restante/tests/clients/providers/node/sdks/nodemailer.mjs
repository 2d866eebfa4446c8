// npm nodemailer with the transport for SES

import assert from "node:assert/strict";
import { BadRequestException, SendEmailCommand, SESv2Client } from "@aws-sdk/client-sesv2";
import { createTransport } from "nodemailer";
import { mail } from "../messages.mjs";

export function connect(url, key) {
    const sesClient = new SESv2Client({
        endpoint: url, region: "us-east-1", credentials: { accessKeyId: key, secretAccessKey: "secret" },
    });
    const transport = createTransport({ SES: { sesClient, SendEmailCommand } });
    return {
        async send(message) {
            const info = await transport.sendMail(mail(message));
            assert.match(info.messageId, /^<[\w.-]+@(email\.amazonses\.com|[\w.-]+)>$/);
            assert.equal(info.envelope.to.length, message.to.length + message.cc.length + message.bcc.length);
        },

        checkInvalid(error) {
            assert.ok(error instanceof BadRequestException, error);
            assert.equal(error.code, "ESES");
        },
    };
}
