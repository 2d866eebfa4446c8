// How entries of the webhook queue are shown: the event and its message, and the body of the request.

/** @import { WebhookEntry, WebhookTarget } from '../types.js' */
/** @import { EntryKind } from './queue-entry.js' */

import { h } from '../lib/dom.js';
import { Queue } from '../lib/queue.js';
import { visible } from '../lib/visible.js';

/** The webhook queue. @type {Queue<WebhookTarget, WebhookEntry>} */
export const webhooks = new Queue('webhooks');

/** @type {EntryKind<WebhookEntry>} */
export const WEBHOOK_ENTRY = {
  queue: webhooks,
  label: 'Events, newest first',
  name: ({ event, mailbox }) => `${event} in ${mailbox}`,
  object: 'the event',
  preposition: ' to ',
  hasMessage: ({ event }) => event === 'stored',
  notCancelled: 'The event is no longer queued.',
  facts: ({ message, 'webhook-id': id }) => [['Message', message], ['webhook-id', h('bdi', { class: 'mono' }, visible(id))]],
  more: () => null,
  details: {
    label: () => ['Body of the request'],
    load: async (id, signal) => {
      const { payload } = await webhooks.entry(id, signal);
      return payload === null ? h('p', { class: 'soft' }, 'It is not stored any more.') : h('pre', { class: 'queue-payload mono' }, visible(JSON.stringify(JSON.parse(payload), null, 2)));
    },
    isAvailable: ({ state }) => state !== 'delivered',
  },
};
