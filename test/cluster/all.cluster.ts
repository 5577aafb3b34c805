// `npm run test:cluster`: opens the fixture, applies the policies as the guide says, runs every scenario,
// five at a time, and takes everything away again.

import { after, before, describe } from 'node:test';
import { runAnnotationScenarios } from './annotations.cluster.ts';
import { runChartScenarios } from './chart.cluster.ts';
import { runContainerScenarios } from './container.cluster.ts';
import { runExplainScenarios } from './explain.cluster.ts';
import { applyPolicy, defineLocustTests, openFixture } from './fixture.ts';
import { runGuideScenarios } from './guide.cluster.ts';
import { runHarmlessScenarios } from './harmless.cluster.ts';
import { runInPlaceScenarios } from './in-place.cluster.ts';
import { runJobsScenarios } from './jobs.cluster.ts';
import { runJobsEndingScenarios } from './jobs-endings.cluster.ts';
import { runKeeperScenarios } from './keeper.cluster.ts';
import { runMigrationScenarios } from './migrate.cluster.ts';
import { runOperatorScenarios } from './operator.cluster.ts';
import { runPodScenarios } from './pods.cluster.ts';
import { type Fixture, setFixture } from './scenario.ts';
import { runTellingScenarios } from './telling.cluster.ts';
import { runVerdictScenarios } from './verdict.cluster.ts';

let opened: (Fixture & AsyncDisposable) | undefined;

describe('a cluster', { timeout: 2_700_000 }, () => {
  before(async () => {
    opened = await openFixture();
    setFixture(opened);
  });
  after(() => opened?.[Symbol.asyncDispose]());

  // Before other policies are there: which of two comes first is not known.
  describe('the chart', { concurrency: 2 }, () => {
    runChartScenarios();
    runKeeperScenarios();
  });

  describe('with the policies', () => {
    before(() => opened && applyPolicy(opened));
    describe('played', { concurrency: 5 }, runPlayedScenarios);
    // It brings its own definition of LocustTests.
    runOperatorScenarios();
  });
});

function runPlayedScenarios(): void {
  let forget: (() => Promise<unknown>) | undefined;
  before(async () => {
    forget = opened && (await defineLocustTests(opened.cluster));
  });
  after(() => forget?.());

  runPodScenarios();
  runInPlaceScenarios();
  runJobsScenarios();
  runJobsEndingScenarios();
  runHarmlessScenarios();
  runGuideScenarios();
  runMigrationScenarios();
  runContainerScenarios();
  runAnnotationScenarios();
  runExplainScenarios();
  runTellingScenarios();
  runVerdictScenarios();
}
