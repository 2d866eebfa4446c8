// The envelope of a message: its recipients, and the copies in the mailboxes.

/** @import { Copy, Message, ShownMessage, Summary, Whole } from '../../types.js' */

import { address } from '../../lib/format.js';
import { addresses } from './addresses.js';

/**
 * Returns the envelope with missing members replaced, or null if this is not an envelope. Messages that were stored by an older
 * version have no recipients.
 * @param {any} whole
 * @returns {Whole | null}
 */
export function checked(whole) {
  if (typeof whole !== 'object' || whole === null) return null;
  const list = (/** @type {unknown} */ value) => (Array.isArray(value) ? value : []);
  const strings = (/** @type {unknown} */ value) => list(value).filter((one) => typeof one === 'string');
  const copies = list(whole.copies).filter((copy) => typeof copy?.mailbox === 'string' && typeof copy.id === 'string');
  return {
    ...whole,
    to: strings(whole.to),
    cc: strings(whole.cc),
    recipients: strings(whole.recipients),
    mailboxes: strings(whole.mailboxes),
    tags: strings(whole.tags),
    copies: copies.map((copy) => ({ ...copy, recipients: strings(copy.recipients) })),
  };
}

/**
 * Returns the envelope of a message with one copy.
 * @param {Summary} summary
 * @param {Message} message
 * @returns {Whole}
 */
export function ofSummary({ id, to, cc, recipients, mailboxes, tags, seen }, { mailbox, id: copy }) {
  return { id, to, cc, recipients, mailboxes, tags: [...tags], sender: null, copies: [{ mailbox, id: copy, seen, tags, recipients }] };
}

/**
 * Returns the recipients as the headline shows them. `bcc` contains the recipients of the envelope that To and Cc do not name.
 * @param {ShownMessage} message
 * @returns {{ to: string[], cc: string[], bcc: string[] }}
 */
export function recipients({ headers, to: known, whole }) {
  // Without a To field the server returns the recipients of the envelope as `to`.
  const to = headers.some(({ name }) => name.toLowerCase() === 'to') || !whole ? known : [];
  const cc = whole?.cc ?? [];
  const named = new Set([...to, ...cc].map(comparable));
  const bcc = (whole?.recipients ?? []).filter((recipient) => !named.has(comparable(recipient)));
  return to.length + cc.length + bcc.length > 0 ? { to, cc, bcc } : { to: known, cc, bcc };
}

/**
 * Returns the addresses of Reply-To, unless there is no other than that of the sender.
 * @param {Message} message
 */
export function replyTo({ headers, from }) {
  const field = headers.find(({ name }) => name.toLowerCase() === 'reply-to');
  const all = field ? addresses(field.decoded ?? field.value) : [];
  return all.every((one) => comparable(one) === comparable(from)) ? [] : all;
}

/**
 * Returns the copy that is shown, and the others.
 * @param {ShownMessage} message
 * @returns {{ own: Copy | null, others: Copy[] }}
 */
export function copies({ mailbox, copy: id, whole }) {
  const all = whole?.copies ?? [];
  const own = all.find((copy) => copy.id === id && copy.mailbox === mailbox) ?? null;
  if (own && all.length === 1 && !own.recipients?.length) return { own: { ...own, recipients: whole?.recipients }, others: [] };
  return { own, others: all.filter((copy) => copy !== own) };
}

/** @param {string} text */
const comparable = (text) => address(text.trim()).address.toLowerCase();
