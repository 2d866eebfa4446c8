/** The types of the API responses. */

/** A message in a listing. */
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
  where: "subject" | "text" | "html";
}

/** A link: its URL and its visible text. */
export interface Link {
  href: string;
  text: string;
  "image-alt": string | null;
  where: "html" | "text" | "header";
  kind: "http" | "mailto" | "other";
}

/** Returns a short description of a message for error texts. */
export function describe({ id, subject, from }: Pick<Summary, "id" | "subject" | "from">): string {
  return `message ${id} "${subject}" from ${from}`;
}
