import { Icon } from "./icon.tsx";

interface MonthHeadProps {
  readonly name: string;
  readonly previous: string;
  readonly next: string;
}

/** The name of a month, and the ways to the months beside it. */
export function MonthHead({ name, previous, next }: MonthHeadProps) {
  return (
    <header>
      <h2>{name}</h2>
      <span class="push rowf">
        <a class="btn small icon ghost" href={previous} aria-label="Previous month">
          <span class="flip-x">
            <Icon name="right" small />
          </span>
        </a>
        <a class="btn small icon ghost" href={next} aria-label="Next month">
          <Icon name="right" small />
        </a>
      </span>
    </header>
  );
}
