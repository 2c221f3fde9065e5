import { type JudgedGoal, judgedGoals } from "./goals.ts";
import { judgedHttp, type LastRun } from "./last-run.ts";
import { type GoalLine, OTHER_GOALS } from "./other-goals.ts";

/** All goals of the project: those that the last run measured, and those that have a command of their own. */
export function goalTable(run: LastRun): string {
  const lines = [...workloadLines(run), ...httpLines(run), ...OTHER_GOALS];
  const rows = lines.map(
    ({ goal, figure, on, isMet, command }) =>
      `| ${goal} | ${figure} | ${isMet ? "met" : "**missed**"} | ${on} | \`${command}\` |`,
  );
  const missed = lines.filter(({ isMet }) => !isMet).length;
  const summary = `${lines.length - missed} of ${lines.length} goals are met, ${missed} are missed.`;
  return [summary, "", "| goal | figure | | on | command |", "|---|---|---|---|---|", ...rows].join("\n");
}

/** A goal that several servers have in common is one line, and it is met if all of them meet it. */
function workloadLines({ workloads = {} }: LastRun): GoalLine[] {
  return Object.entries(workloads).flatMap(([name, { at, rows }]) => {
    const bySays = Map.groupBy(judgedGoals(name, rows), (goal) => `${databaseOf(goal)}: ${goal.says}`);
    return Array.from(bySays, ([says, goals]) => ({
      goal: `${name}, ${says}`,
      figure: goals.map(figureText).join("; "),
      on: at.slice(0, 10),
      isMet: goals.every(({ isMet }) => isMet),
      command: `npm run bench:publish -- --only ${name}`,
    }));
  });
}

function databaseOf({ server }: JudgedGoal): string {
  return server.replace(/ \d+$/, "");
}

function figureText({ server, figure }: JudgedGoal): string {
  const version = / (\d+)$/.exec(server)?.[1];
  return version === undefined ? figure.toFixed(2) : `${figure.toFixed(2)} on ${version}`;
}

function httpLines({ http = [], workloads = {} }: LastRun): GoalLine[] {
  const before = Object.values(workloads)[0]?.at ?? "";
  return judgedHttp(http).map(({ says, shown, isMet, at = before }) => ({
    goal: `HTTP round trips, ${says}`,
    figure: shown,
    on: at.slice(0, 10),
    isMet,
    command: "npm run bench:publish -- --only http",
  }));
}
