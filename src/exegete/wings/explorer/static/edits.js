// Edits: rows of weights in a person's hand. Nothing is predicted here; the server says what weights do.

const PLACES = 1e9; // so that an address restores exactly what was asked
/** @param {number} x */
export const rounded = (x) => Math.round(x * PLACES) / PLACES;
/** @param {number[]} row */
export const sum = (row) => row.reduce((total, weight) => total + weight, 0);

/**
 * A row with one weight dragged. Kept whole, the free weights share what is left in their proportions; locked ones stay.
 * @param {number[]} row @param {number} key @param {number} value
 * @param {{whole: boolean, total: number, locked: Set<number>}} rule
 */
export function dragged(row, key, value, { whole, total, locked }) {
  if (!whole) return row.map((weight, i) => (i === key ? rounded(Math.min(1, Math.max(0, value))) : weight));
  const free = row.map((_, i) => i !== key && !locked.has(i));
  const held = sum(row.filter((_, i) => i !== key && locked.has(i)));
  const others = free.filter(Boolean).length, room = Math.max(0, total - held);
  const mine = others ? Math.min(room, Math.max(0, value)) : room;
  const before = sum(row.filter((_, i) => free[i])), left = room - mine;
  return row.map((weight, i) => {
    if (i === key) return rounded(mine);
    if (!free[i]) return weight;
    return rounded(before > 0 ? (weight * left) / before : left / others);
  });
}

/** Rows that were changed, by number; all others are the model's own. @typedef {Map<number, number[]>} Rows */

/** What was done, to be undone. */
export class History {
  constructor() { this.clear(); }
  clear() { this.past = [new Map()]; this.at = 0; }
  /** @returns {Rows} */
  get rows() { return this.past[this.at]; }
  /** @param {Rows} rows */
  push(rows) { this.past = [...this.past.slice(0, this.at + 1), rows].slice(-200); this.at = this.past.length - 1; }
  /** The same step goes on: a drag is one edit. @param {Rows} rows */
  replace(rows) { this.past[this.at] = rows; }
  undo() { this.at = Math.max(0, this.at - 1); }
  redo() { this.at = Math.min(this.past.length - 1, this.at + 1); }
  get undoable() { return this.at > 0; }
  get redoable() { return this.at < this.past.length - 1; }
}

/** Rows as an address has them. @param {Rows} rows */
export const written = (rows) => [...rows].map(([row, weights]) => `${row}:${weights.join(",")}`).join(";");
/** The same back; what is no row of weights is left out. @param {string} said @returns {Rows} */
export function read(said) {
  const parts = (said || "").split(";").map((part) => part.split(":"));
  const rows = parts.map(([row, weights]) => [Number(row), (weights || "").split(",").map(Number)]);
  return new Map(rows.filter(([row, weights]) => Number.isInteger(row) && weights.length && weights.every((w) => w >= 0 && w <= 1)
    && parts.length && said));
}
/** As a request has them. @param {Rows} rows */
export const listed = (rows) => [...rows].map(([row, weights]) => ({ row, weights }));
