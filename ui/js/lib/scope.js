// What a list of messages contains: all messages, those of one mailbox, or those of them that match a query.

/**
 * @typedef {object} Scope
 * @property {string | null} mailbox Null for all mailboxes.
 * @property {string} query Empty if there is no query.
 */

/**
 * @param {Scope} a
 * @param {Scope} b
 */
export const isSameScope = (a, b) => a.mailbox === b.mailbox && a.query === b.query;

/** A text that identifies a scope. @param {Scope} scope */
export const scopeKey = ({ mailbox, query }) => JSON.stringify([mailbox, query]);
