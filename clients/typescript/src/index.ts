/**
 * Waits for messages in tests: a client for the Restante mail server.
 *
 *     const box = new Restante().mailbox("ann");
 *     await signUp("ann@example.org");
 *     const mail = await box.waitForMessage({ match: "subject:welcome" });
 *     await enter(await mail.code());
 */

export { NotFound, Refused, RestanteError, UnexpectedMail, WaitTimeout } from "./errors.js";
export { Mailbox, type Draft, type WaitOptions } from "./mailbox.js";
export { Message } from "./message.js";
export type { Attachment, Code, Content, Link, Summary } from "./records.js";
export { Restante, type MailboxState, type RestanteOptions } from "./server.js";
