// The name and the counts of a list of messages, for its head and for the title of the window.

/** @import { Mailboxes } from './mailboxes.js' */
/** @import { Messages } from './messages.js' */
/** @import { Scope } from './scope.js' */

import { tagsOf, tagTerm } from './filters.js';

/**
 * @typedef {object} ListDescription
 * @property {string} title
 * @property {number | null} total The number of messages; null if it is not known.
 * @property {number | null} unread
 * @property {boolean} isMore True if the list has more messages than `total`.
 * @property {boolean} isListed False while the list is loading, and if the server refuses it.
 * @property {boolean} isPaused
 * @property {number} waiting The number of messages that arrived during the pause.
 */

/** @param {Scope} scope */
export function listName({ mailbox, query }) {
  if (query === '') return mailbox ?? 'Inbox';
  const [tag] = tagsOf(query);
  if (tag !== undefined && mailbox === null && query === tagTerm(tag)) return `Tag ${tag}`;
  return mailbox === null ? 'Search results' : `Search in ${mailbox}`;
}

/**
 * @param {Messages} messages
 * @param {Mailboxes} mailboxes
 * @param {number | null} total The number of messages in all mailboxes, or null.
 * @returns {ListDescription}
 */
export function describeList(messages, mailboxes, total) {
  const { scope, state, isComplete, isPaused, waiting, entries } = messages;
  const counts = countMessages(messages, mailboxes, total);
  return { title: listName(scope), ...counts, isMore: !isComplete && counts.total === entries.length, isListed: state === 'listed', isPaused, waiting };
}

/**
 * Counts the messages of a list. If it is not complete, the counts of the server are used.
 * @param {Messages} messages
 * @param {Mailboxes} mailboxes
 * @param {number | null} total
 * @returns {{ total: number | null, unread: number | null }}
 */
function countMessages({ scope: { mailbox, query }, state, isComplete, entries, unread }, mailboxes, total) {
  if (isComplete) return { total: entries.length, unread };
  if (query === '' && mailbox === null) return { total, unread: null };
  const listed = query === '' && mailbox !== null ? mailboxes.all.get(mailbox) : undefined;
  if (listed) return { total: listed.messages, unread: listed.unseen };
  return { total: state === 'listed' ? entries.length : null, unread: null };
}
