"""What Schemathesis is to know of this API beside its document."""

import os

import schemathesis


@schemathesis.check
def no_fault_of_ours(ctx, response, case):
    """No 500 ever, and no other 5xx that the document does not declare: 503 is an answer of the contract."""
    status = response.status_code
    declared = case.operation.definition.raw.get("responses", {})
    if status == 500 or (status > 500 and str(status) not in declared):
        raise AssertionError(f"{status} is no answer of this operation")


@schemathesis.hook
def after_call(context, case, response):
    """Notes which operations have accepted a request: its own rates leave out what a delete can do once only."""
    if 200 <= response.status_code < 300:
        with open(os.environ["MILLRACE_ACCEPTED"], "a", encoding="utf-8") as accepted:
            accepted.write(f"{case.operation.label}\n")
