// The mailboxes that contain messages, with their counts.

/** @import { Mailbox, Summary } from '../types.js' */

import * as api from './api.js';
import { LiveData } from './live-data.js';

const LIMIT = 1000;

export class Mailboxes extends LiveData {
  /** By name. @type {Map<string, Mailbox>} */
  all = new Map();
  /** True if these are all mailboxes; false if they are the first ones with the prefix. */
  isComplete = true;
  /** The start of the names, if not all mailboxes can be loaded. */
  prefix = '';

  /** The number of unread copies in these mailboxes. */
  get unread() {
    return [...this.all.values()].reduce((sum, { unseen }) => sum + unseen, 0);
  }

  /**
   * @override
   * @param {AbortSignal} signal
   */
  async request(signal) {
    const prefix = this.isComplete ? '' : this.prefix;
    const { mailboxes, next } = await api.mailboxes({ limit: LIMIT, prefix, signal });
    this.isComplete = next === null && prefix === '';
    this.all = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
  }

  /**
   * @override
   * @param {Summary} message
   */
  isMissing({ mailboxes, received }) {
    const newest = (/** @type {string} */ name) => this.all.get(name)?.newest['posix-millis'] ?? 0;
    return mailboxes.some((name) => newest(name) < Date.parse(received));
  }
}
