// What the number of samples says about a share: its standard error, and whether a change is more
// than chance.
//
// A profile knows how much time there was (from a clock) and divides it by samples. So a share is
// the share of samples, and its error that of a proportion among n of them.

/**
 * Part of the amounts, or of the time.
 * @typedef {{from: number, to: number}} Span
 */

/** A change is significant if it is larger than this many of its standard errors. */
const SIGNIFICANT_ERRORS = 3;

/**
 * What amounts stand on: how many samples were taken; the number of samples of equal weight that
 * would give the same error (Kish), as threads that are sampled at different rates have samples of
 * different weights; and the share of what no sample divides, which may be anybody's.
 * @typedef {{taken: number, effective: number, unknown: number}} Basis
 */

/** @type {Basis} */
const NO_BASIS = {taken: 0, effective: 0, unknown: 0};

/**
 * @param {Float64Array} amounts of each thread @param {Float64Array} counts samples of each thread
 * @param {number} unknown an amount of which nothing says whose it is
 * @returns {Basis}
 */
function basisOf(amounts, counts, unknown) {
  let taken = 0;
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < amounts.length; i++) {
    taken += counts[i];
    if (counts[i] > 0) {
      sum += Math.abs(amounts[i]);
      squares += (amounts[i] * amounts[i]) / counts[i];
    } else unknown += Math.abs(amounts[i]);
  }
  if (squares === 0) return NO_BASIS;
  return {taken, effective: (sum * sum) / squares, unknown: unknown / (sum + unknown)};
}

/**
 * The standard error of a share among `samples`. One sample inside and one outside are added, so
 * that a function that was never sampled, or always, has an error too (Agresti and Coull).
 * @param {number} share @param {number} samples
 */
function standardError(share, samples) {
  if (!(samples > 0)) return NaN;
  const adjusted = (share * samples + 1) / (samples + 2);
  return Math.sqrt((adjusted * (1 - adjusted)) / (samples + 2));
}

/**
 * The standard error of a share of the whole. Half of what is unknown is added, so that two errors
 * reach the ends of what is possible.
 * @param {number} share @param {Basis} basis
 */
function errorOf(share, {effective, unknown}) {
  const known = 1 - unknown;
  const part = known > 0 ? Math.min(Math.abs(share) / known, 1) : 0;
  return Math.hypot(known * standardError(part, effective), unknown / 2);
}

/**
 * @typedef {{change: number, error: number, isSignificant: boolean}} Difference of two shares
 */

/**
 * How a share differs from that of another, independent set of samples.
 * @param {number} share @param {Basis} basis
 * @param {number} baseShare @param {Basis} baseBasis
 */
function difference(share, basis, baseShare, baseBasis) {
  const change = share - baseShare;
  const error = Math.hypot(errorOf(share, basis), errorOf(baseShare, baseBasis));
  return {change, error, isSignificant: Math.abs(change) > SIGNIFICANT_ERRORS * error};
}

/** "+3.1 % ± 0.4", or "not significant". @param {Difference} difference */
function formatDifference({change, error, isSignificant}) {
  if (!isSignificant) return 'not significant';
  return `${change > 0 ? '+' : ''}${formatShare(change)} ${formatError(error)}`;
}
