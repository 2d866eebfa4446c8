// Requests of a queue of the server: the relay queue or the webhook queue. Each has targets, and entries that are sent to them.

/** @import { EntryPage, EntryState, QueueEntry, QueueTarget } from '../types.js' */

import { json, requestJson } from './api.js';
import { parameters, serverPath } from './paths.js';

/** @typedef {{ ids: string[] } | { target: string } | { all: true }} Selection The entries or targets that are changed. */
/** @typedef {{ message?: string | null, state?: EntryState | null, before?: string | null, limit?: number, signal?: AbortSignal }} EntryFilter */

/**
 * @template {QueueTarget} T
 * @template {QueueEntry} E
 */
export class Queue {
  /** Dispatches `change` after this page has added or changed entries or targets. */
  changes = new EventTarget();
  #name;

  /** @param {string} name The segment of its paths. */
  constructor(name) {
    this.#name = name;
  }

  /** @param {...string} segments */
  #path(...segments) {
    return serverPath('api', 'v2', this.#name, ...segments);
  }

  /**
   * Returns the targets with their current states and the number of their entries.
   * @param {AbortSignal} [signal]
   * @returns {Promise<T[]>}
   */
  async targets(signal) {
    return (await requestJson(this.#path(), { signal })).targets;
  }

  /**
   * Lists entries, newest first.
   * @param {EntryFilter} filter
   * @returns {Promise<EntryPage<E>>}
   */
  entries({ message, state, before, limit, signal }) {
    return requestJson(this.#path('entries') + parameters({ message, state, before, limit }), { signal });
  }

  /**
   * Returns an entry with its details.
   * @param {string} id
   * @param {AbortSignal} [signal]
   */
  entry(id, signal) {
    return requestJson(this.#path('entries', id), { signal });
  }

  /**
   * Makes entries due now. Returns their number.
   * @param {Selection} selection
   * @returns {Promise<number>}
   */
  async retry(selection) {
    return (await this.change(this.#path('retry'), selection)).retried;
  }

  /**
   * Cancels entries that are queued or being sent. Returns their number.
   * @param {Selection} selection
   * @returns {Promise<number>}
   */
  async cancel(selection) {
    return (await this.change(this.#path('cancel'), selection)).cancelled;
  }

  /**
   * Pauses a target, or ends its pause.
   * @param {string} target
   * @param {boolean} isPaused
   */
  async setPaused(target, isPaused) {
    await this.change(this.#path(isPaused ? 'pause' : 'resume'), { target });
  }

  /**
   * Sends a change, and dispatches `change`.
   * @param {string} path
   * @param {unknown} body
   */
  async change(path, body) {
    const response = await requestJson(path, json('POST', body));
    this.changes.dispatchEvent(new Event('change'));
    return response;
  }
}

/** @type {readonly EntryState[]} */
const PENDING = ['queued', 'sending'];
/** @type {readonly EntryState[]} */
const RETRYABLE = ['queued', 'failed', 'cancelled'];

/**
 * Returns whether an entry may still change without a request. Only such an entry can be cancelled.
 * @param {QueueEntry} entry
 */
export const isPending = ({ state }) => PENDING.includes(state);

/**
 * Returns whether an entry can be made due now.
 * @param {QueueEntry} entry
 */
export const isRetryable = ({ state }) => RETRYABLE.includes(state);

/**
 * Returns whether any entry of the targets can be cancelled.
 * @param {QueueTarget[]} targets
 */
export const isAnyPending = (targets) => hasEntries(targets, PENDING);

/**
 * Returns whether any entry of the targets can be made due now.
 * @param {QueueTarget[]} targets
 */
export const isAnyRetryable = (targets) => hasEntries(targets, RETRYABLE);

/**
 * Returns whether any entry of the targets is in one of the states.
 * @param {QueueTarget[]} targets
 * @param {readonly EntryState[]} states
 */
const hasEntries = (targets, states) => targets.some(({ entries }) => states.some((state) => entries[state] > 0));
