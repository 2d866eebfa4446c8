/** What the API answers with, as far as tests read it. */

/** A message as a listing has it. */
export interface Summary {
  mailbox: string;
  /** Its id within the mailbox; ids ascend with arrival. */
  id: string;
  /** `Name <address>`. */
  from: string;
  /** `Name <address>` each. */
  to: string[];
  subject: string;
  /** When the server received it, as RFC 3339. */
  date: string;
  "posix-millis": number;
  /** The length of its source in bytes. */
  size: number;
  seen: boolean;
}

/** A message as a whole, as the API has it. */
export interface Content extends Summary {
  body: { text: string; html: string };
  /** By canonical names; values not decoded. */
  header: Record<string, string[]>;
  attachments: Attachment[];
}

/** A file that came with a message. */
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

/** A link: where it goes, and what a reader sees of it. */
export interface Link {
  href: string;
  text: string;
  "image-alt": string | null;
  where: "html" | "text" | "header";
  kind: "http" | "mailto" | "other";
}

/** A message in a few words, for those who read why a test failed. */
export function describe({ id, subject, from }: Pick<Summary, "id" | "subject" | "from">): string {
  return `message ${id} "${subject}" from ${from}`;
}
