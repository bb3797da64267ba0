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
 * The number of samples of equal weight that would give the same error (Kish). Threads that are
 * sampled at different rates have samples of different weights.
 * @param {Float64Array} amounts of each thread @param {Float64Array} counts samples of each thread
 */
function effectiveSamples(amounts, counts) {
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < amounts.length; i++) {
    sum += amounts[i];
    if (counts[i] > 0) squares += (amounts[i] * amounts[i]) / counts[i];
  }
  return squares > 0 ? (sum * sum) / squares : 0;
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
 * @typedef {{change: number, error: number, isSignificant: boolean}} Difference of two shares
 */

/**
 * How a share differs from that of another, independent set of samples.
 * @param {number} share @param {number} samples
 * @param {number} baseShare @param {number} baseSamples
 */
function difference(share, samples, baseShare, baseSamples) {
  const change = share - baseShare;
  const error = Math.hypot(standardError(share, samples), standardError(baseShare, baseSamples));
  return {change, error, isSignificant: Math.abs(change) > SIGNIFICANT_ERRORS * error};
}

/** "+3.1 % ± 0.4", or "not significant". @param {Difference} difference */
function formatDifference({change, error, isSignificant}) {
  if (!isSignificant) return 'not significant';
  return `${change > 0 ? '+' : ''}${formatShare(change)} ${formatError(error)}`;
}
