# SPDX-License-Identifier: Apache-2.0
"""One short line per task that changed something or failed; silence for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible.plugins.callback import CallbackBase

if TYPE_CHECKING:
    from ansible.executor.task_result import CallbackTaskResult
    from ansible.playbook.task import Task

DOCUMENTATION = """
name: warpbed
type: stdout
short_description: one line per change
description:
  - Prints the name of each task that changed something, the message of each C(debug) task, and the reason of a failure.
  - A task tagged C(slow) is announced when it starts, since it is silent for minutes.
"""

LAST_LINES = 40
STREAMED = "warpbed_stream"
"""The action whose program writes to the terminal while it runs."""


class CallbackModule(CallbackBase):
    """Output for a reader who did not ask for Ansible's own words."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "warpbed"

    def v2_playbook_on_task_start(self, task: Task, is_conditional: bool) -> None:
        if "slow" in task.tags and not task.check_mode:
            self._display.display(f"{task.name} …")

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        if result.task.action in {"debug", "ansible.builtin.debug"}:
            self._display.display(str(result.result.get("msg", "")))
        elif result.task.action.rpartition(".")[2] == STREAMED:
            pass  # its program has spoken for itself, the result last
        elif result.result.get("changed") and "slow" not in result.task.tags:
            self._display.display(f"{_where(result)}{result.task.name}")

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._fail(result, reason(result.result))

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self._fail(result, reason(result.result))

    def v2_runner_item_on_failed(self, result: CallbackTaskResult) -> None:
        self._fail(result, f"{self._get_item_label(result.result)}: {reason(result.result)}")

    def _fail(self, result: CallbackTaskResult, why: str) -> None:
        self._display.display(f"{_where(result)}failed: {result.task.name}\n{why}", stderr=True)


def reason(result: dict[str, Any]) -> str:
    """What a person needs to know of a failure: the program's own words where there are any."""
    outputs = [str(result.get(key) or "").strip() for key in ("stderr", "module_stderr", "stdout")]
    message = str(result.get("msg") or "").strip()
    if message in {"", "non-zero return code"}:
        message = next(filter(None, outputs), f"exit status {result.get('rc')}")
    elif outputs[0] and outputs[0] not in message:
        message = f"{message}\n{outputs[0]}"
    lines = message.splitlines()
    return "\n".join(lines if len(lines) <= LAST_LINES else ["…", *lines[-LAST_LINES:]])


def _where(result: CallbackTaskResult) -> str:
    """Name the host unless it is this machine."""
    host: str = result.host.get_name()
    return "" if host == "localhost" else f"{host}: "
