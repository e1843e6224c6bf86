/** Something in the operator's hands is not right; the message says what, and what to do. */
export class OperatorsProblemError extends Error {
  override readonly name: string = 'OperatorsProblemError';
}
