/** The types of the API responses. */

/** A message in the listing of a mailbox. */
export interface Summary {
  mailbox: string;
  /** The id in the mailbox. Later messages have greater ids. */
  id: string;
  /** `Name <address>`. */
  from: string;
  /** `Name <address>` each. */
  to: string[];
  subject: string;
  /** The time when the server received the message, in RFC 3339 format. */
  date: string;
  "posix-millis": number;
  /** The length of the source in bytes. */
  size: number;
  seen: boolean;
}

/** A message with its content. */
export interface Content extends Summary {
  body: { text: string; html: string };
  /** By canonical name. Values are not decoded. */
  header: Record<string, string[]>;
  attachments: Attachment[];
}

/** A message of the server, with copies in one mailbox or in several. */
export interface MessageEntry {
  /** The id of the message, or of the copy. Later messages have greater ids. */
  id: string;
  /** The mailbox that was listed, if the entry is the copy in it. */
  mailbox?: string;
  /** `Name <address>`. */
  from: string;
  /** The header fields To and Cc: `Name <address>` each. */
  to: string[];
  cc: string[];
  /** The addresses to which the message was sent. */
  recipients: string[];
  /** The mailboxes that contain a copy. */
  mailboxes: string[];
  subject: string;
  /** The first words of the text. */
  snippet: string;
  /** The time when the server received the message, in RFC 3339 format. */
  received: string;
  /** The length of the source in bytes. */
  size: number;
  /** The number of attachments. */
  attachments: number;
  /** Whether all copies are marked as seen. */
  seen: boolean;
  tags: string[];
}

/** The copy of a message in one mailbox. */
export interface MessageCopy {
  mailbox: string;
  /** The id in the mailbox. It can differ from the id of the message. */
  id: string;
  number: number;
  /** The addresses to which the message was sent and that belong to the mailbox. */
  recipients: string[];
  seen: boolean;
  tags: string[];
}

/** The client that delivered a message. */
export interface Client {
  ip: string | null;
  helo: string;
  /** The name with which it logged in. */
  login: string | null;
}

/** A message of the server, with its envelope and its copies. */
export interface WholeMessageRecord extends MessageEntry {
  /** The sender of the envelope; empty for bounces. */
  sender: string;
  client: Client;
  copies: MessageCopy[];
}

/** An attached file. */
export interface Attachment {
  filename: string;
  "content-type": string;
  "download-link": string;
  "view-link": string;
  md5: string;
}

/** A one-time code, with a score from 0 to 1 and the words around it. */
export interface Code {
  code: string;
  score: number;
  before: string;
  after: string;
  where: "header" | "subject" | "text" | "html";
  /** The origin that the header field `OTP-Token` declares for its code, such as `https://example.com`. */
  origin?: string;
}

/** A link: its URL and its visible text. */
export interface Link {
  href: string;
  text: string;
  "image-alt": string | null;
  where: "html" | "text" | "header";
  kind: "http" | "mailto" | "other";
  /** Whether this is the link that the message asks to follow. At most one link is. */
  main: boolean;
}

/** Percentages of support in mail clients. */
export interface HtmlCheckScore {
  supported: number;
  partial: number;
  unsupported: number;
}

/** A feature of HTML or CSS that a message uses. */
export interface HtmlCheckFeature {
  slug: string;
  title: string;
  category: string;
  /** The page about the feature, or null for scripts, which no client supports. */
  url: string | null;
  /** The number of uses. A property counts once for each element to which it applies. */
  count: number;
  /** The lines of the HTML that use the feature, at most 50. */
  lines: number[];
  score: HtmlCheckScore;
  /** The support in the newest tested version of each client. */
  clients: {
    family: string;
    platform: string;
    version: string;
    support: "yes" | "partial" | "no" | "unknown";
    note: number | null;
  }[];
}

/** Which mail clients support the HTML of a message. */
export interface HtmlCheck {
  score: HtmlCheckScore;
  /** The features that the message uses, the most harmful first. */
  features: HtmlCheckFeature[];
  /** Whether a part of the message was not checked, because it is too large. */
  truncated: boolean;
}

/** A recipient of an entry of the relay queue. */
export interface RelayRecipient {
  address: string;
  state: "waiting" | "delivered" | "failed";
  /** The last reply about this recipient; empty before the first attempt. */
  reply: string;
}

/** The fields that entries of all queues have. */
interface QueueEntry {
  id: string;
  /** The id of the message. */
  message: string;
  /** The mailbox of the copy that it is about. */
  mailbox: string;
  /** The name of the target. */
  target: string;
  state: "queued" | "sending" | "delivered" | "failed" | "cancelled";
  attempts: number;
  created: string;
  /** When the entry fails if it could not be sent before. */
  expires: string;
  "next-attempt": string | null;
  "last-attempt": string | null;
  /** The last reply of the target, or the error that prevented one. */
  "last-reply": string;
}

/** An entry of the relay queue: a message that is sent to some recipients through one target. */
export interface RelayEntry extends QueueEntry {
  /** The sender of the envelope; empty for bounces. */
  sender: string;
  recipients: RelayRecipient[];
  /** Whether a client released the message, or a rule forwards it. */
  origin: "release" | "forward";
  /** The user or token that released the message. */
  by: string | null;
}

/** An entry of the webhook queue: an event that is sent to one target. */
export interface WebhookEntry extends QueueEntry {
  event: "stored" | "deleted";
  /** The header field `webhook-id` of the requests. */
  "webhook-id": string;
}

/** An entry of the relay queue, with the lines of its last attempt. The client is the Restante server. */
export interface RelayEntryDetails extends RelayEntry {
  transcript: { at: string; "posix-millis": number; "after-millis": number; from: "client" | "server"; text: string }[];
}

/** Returns a short description of a message for error texts. */
export function describe({ id, subject, from }: Pick<Summary, "id" | "subject" | "from">): string {
  return `message ${id} "${subject}" from ${from}`;
}
