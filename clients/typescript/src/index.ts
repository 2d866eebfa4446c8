/**
 * Waits for messages in tests: a client for the Restante mail server.
 *
 *     const box = new Restante().mailbox("ann");
 *     await signUp("ann@example.org");
 *     const mail = await box.waitForMessage({ match: "subject:welcome" });
 *     await enter(await mail.code());
 */

export { NotFound, Refused, RestanteError, StartError, UnexpectedMail, WaitTimeout } from "./errors.js";
export { Mailbox, type Draft } from "./mailbox.js";
export { Message, WholeMessage } from "./message.js";
export type {
  Attachment,
  Client,
  Code,
  Content,
  HtmlCheck,
  HtmlCheckFeature,
  HtmlCheckScore,
  Link,
  MessageCopy,
  MessageEntry,
  RelayEntry,
  RelayEntryDetails,
  RelayRecipient,
  Summary,
  WebhookEntry,
  WholeMessageRecord,
} from "./records.js";
export {
  Restante,
  Run,
  type EntryFilter,
  type LeaseOptions,
  type ListOptions,
  type MailboxState,
  type MessageFilter,
  type ReleaseOptions,
  type RestanteOptions,
  type Usage,
} from "./server.js";
export type { WaitOptions } from "./wait.js";
