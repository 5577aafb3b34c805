// The cluster test, `npm run test:cluster`: opens the stage, applies the policy as the guide says, plays every story, five side by
// side, and takes everything away again.

import { after, before, describe } from 'node:test';
import { tellAnnotations } from './annotations.cluster.ts';
import { tellContainers } from './container.cluster.ts';
import { tellGuide } from './guide.cluster.ts';
import { tellJobs } from './job.cluster.ts';
import { tellMigration } from './migrate.cluster.ts';
import { tellPods } from './pods.cluster.ts';
import { applyPolicy, openStage } from './stage.ts';
import { type Stage, setStage } from './story.ts';

let opened: (Stage & AsyncDisposable) | undefined;

describe('a cluster', { concurrency: 5, timeout: 1_500_000 }, () => {
  before(async () => {
    opened = await openStage();
    setStage(opened);
    await applyPolicy(opened);
  });
  after(() => opened?.[Symbol.asyncDispose]());

  tellPods();
  tellGuide();
  tellMigration();
  tellJobs();
  tellContainers();
  tellAnnotations();
});
