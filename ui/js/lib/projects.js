// The project of this page, and the projects that the user may see, with their counts. Every change dispatches `change`.

/** @import { Mailboxes } from './mailboxes.js' */
/** @import { Project } from '../types.js' */

import * as paths from './paths.js';
import { LiveData } from './live-data.js';

const LIMIT = 1000;

class Projects extends LiveData {
  /** The project whose mail this page shows, or null. @type {string | null} */
  current = null;
  /** True if the user may also see other mail than that of the current project. */
  canSwitch = false;
  /** The first projects with messages, in the order of their names. @type {Project[]} */
  all = [];
  isComplete = true;

  /** @param {string | null} name */
  setCurrent(name) {
    this.current = name;
    this.dispatchEvent(new Event('change'));
  }

  /**
   * Loads the projects again after the mailboxes have changed. Without mailboxes in projects there is no request.
   * @param {Mailboxes} mailboxes
   */
  update({ all, isComplete }) {
    const isBelow = paths.isBelowProject(this.current);
    // All mailboxes that the user may see are in one project.
    if (this.current !== null && !isBelow) return;
    if (isBelow || !isComplete || this.all.length > 0 || [...all.keys()].some((name) => name.includes(':'))) this.load();
  }

  /**
   * @override
   * @param {AbortSignal} signal
   */
  async request(signal) {
    // Other projects and other mail are visible only from the root of the server.
    const root = paths.project(null, this.current);
    // Not `api.requestJson`: a proxy may refuse the root, which must not lead to the login page.
    const get = async (/** @type {string} */ path) => (await fetch(root + path, { signal })).json();
    if (this.current !== null && (await get('api/v2/server')).project !== null) return;
    const { projects, next } = await get(`api/v2/projects${paths.parameters({ limit: LIMIT })}`);
    if (!Array.isArray(projects)) throw new TypeError('The response is not a list of projects.');
    [this.canSwitch, this.all, this.isComplete] = [true, projects, next === null];
  }
}

export const projects = new Projects();
