// The messages that every SDK sends, and helpers for their forms.

import { readFileSync } from "node:fs";
import { createTransport } from "nodemailer";

/** Returns the messages for an SDK, by name. Their mailboxes start with the name of the SDK. */
export function messagesFor(sdk) {
    const text = readFileSync(new URL("../messages.json", import.meta.url), "utf8").replaceAll("SDK", sdk);
    return Object.fromEntries(JSON.parse(text).map((message) => [message.name, message]));
}

/** Returns the form `Bob Example <bob@example.test>`. */
export function format({ name, address }) {
    if (!name) return address;
    return /^[\p{L} ]+$/u.test(name) ? `${name} <${address}>` : `"${name}" <${address}>`;
}

/** Returns a person as an object with members of these names. A person without a name has no such member. */
export function person({ name, address }, nameMember, addressMember) {
    return { ...(name && { [nameMember]: name }), [addressMember]: address };
}

/** Returns the form of nodemailer. */
export function mail({ from, to, cc, bcc, "reply-to": replyTo, subject, text, html, attachments }) {
    return {
        from, to, cc, bcc, replyTo, subject, text, html,
        attachments: attachments.map(({ filename, type, content, cid }) => ({
            filename, content, encoding: "base64", contentType: type, ...(cid && { cid, contentDisposition: "inline" }),
        })),
    };
}

/** Returns a message as MIME, without the blind copies. */
export async function mime(message) {
    const transport = createTransport({ streamTransport: true, buffer: true });
    return (await transport.sendMail({ ...mail(message), bcc: [] })).message;
}
