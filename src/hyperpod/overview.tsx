import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Age } from '../clusters/age';
import { clusterStateText } from '../clusters/states';
import type { IClusterDetail } from '../clusters/types';
import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { StateChip } from '../components/stateChip';
import { Watched } from '../components/watched';
import { momentText } from '../components/words';
import { GroupsTable } from './groupsTable';
import { ReachNote } from './reach';
import { Settings } from './settings';
import { IHyperpodCluster, LinkKind } from './types';
import { imageStatusText, orchestratorText } from './words';

/**
 * What a HyperPod cluster is: its state, its instance groups, its settings, and where it is in AWS' web console.
 */
export function Overview(props: {
  watched: Watched<IClusterDetail>;
  showMetrics: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { showMetrics, trans, watched } = props;
  const { value } = watched;
  const known = value?.cluster.hyperpod ?? null;
  // Of a cluster of the configuration there is something to say though AWS does not describe it.
  const error = watched.error ?? (known === null ? value?.problem : null);
  return (
    <>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => watched.refresh()}
        />
      )}
      {value === null && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {value && known === null && !error && (
        <Notes notes={[trans.__('This is not a HyperPod cluster.')]} />
      )}
      {value && known && (
        <>
          <div className="jp-HyperPod-Table-head">
            <StateChip
              state={known.state}
              text={clusterStateText(known.state, trans)}
              reason={known.reason}
              trans={trans}
            />
            <Button press={() => watched.refresh()}>
              {trans.__('Refresh')}
            </Button>
            <Button press={showMetrics}>{trans.__('Metrics')}</Button>
          </div>
          <Detail detail={value} known={known} trans={trans} />
        </>
      )}
    </>
  );
}

function Button(props: {
  press: () => void;
  children: React.ReactNode;
}): JSX.Element {
  const { children, press } = props;
  return (
    <button type="button" className="jp-HyperPod-button" onClick={press}>
      {children}
    </button>
  );
}

interface IProps {
  detail: IClusterDetail;
  /** What AWS knows of it. */
  known: IHyperpodCluster;
  trans: TranslationBundle;
}

function Detail(props: IProps): JSX.Element {
  const { detail, known, trans } = props;
  return (
    <>
      <Age aged={detail} trans={trans} />
      <Notes notes={[known.reason ?? '']} />
      <Facts {...props} />
      {known.reach && <ReachNote reach={known.reach} trans={trans} />}
      {detail.links && <Links links={detail.links} trans={trans} />}
      {known.groups && <GroupsTable groups={known.groups} trans={trans} />}
      <Settings settings={known.settings} trans={trans} />
      <Tags tags={detail.tags ?? []} trans={trans} />
      <Notes notes={detail.notes} />
    </>
  );
}

function Facts({ detail, known, trans }: IProps): JSX.Element {
  const {
    image_status: imageStatus,
    mounted_here: mountedHere,
    nodes,
    target
  } = known;
  const facts: [string, string][] = [
    [trans.__('Orchestrator'), orchestratorText(known.orchestrator, trans)],
    [
      trans.__('Nodes'),
      nodes === null || target === null
        ? ''
        : trans.__('%1 of %2', nodes, target)
    ],
    [trans.__('Configured as'), known.configured_as.join(', ')],
    [trans.__('Mount path here'), mountedText(mountedHere, trans)],
    [
      trans.__('Software'),
      imageStatus === null ? '' : imageStatusText(imageStatus, trans)
    ],
    [trans.__('Created'), momentText(known.created_at ?? '')],
    [trans.__('Region'), known.region],
    [trans.__('ARN'), known.arn],
    [trans.__('Log group'), detail.log_group ?? '']
  ];
  return (
    <dl className="jp-HyperPod-facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function mountedText(
  places: readonly string[] | null,
  trans: TranslationBundle
): string {
  if (places === null) {
    return '';
  }
  return places.length > 0 ? places.join(', ') : trans.__('no');
}

function Links(props: {
  links: Readonly<Record<LinkKind, string | null>>;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { links, trans } = props;
  const labels: Readonly<Record<LinkKind, string>> = {
    cluster: trans.__('Cluster in the SageMaker console'),
    logs: trans.__('Logs in the CloudWatch console'),
    eks: trans.__('EKS cluster in its console')
  };
  const kinds: readonly LinkKind[] = ['cluster', 'logs', 'eks'];
  const shown = kinds.flatMap(kind => {
    const href = links[kind];
    return href === null ? [] : [{ kind, href }];
  });
  return shown.length === 0 ? null : (
    <ul className="jp-HyperPod-Links" aria-label={trans.__('AWS console')}>
      {shown.map(({ href, kind }) => (
        <li key={kind}>
          <a href={href} target="_blank" rel="noopener noreferrer">
            {labels[kind]}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Tags(props: {
  tags: NonNullable<IClusterDetail['tags']>;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { tags, trans } = props;
  return tags.length === 0 ? null : (
    <section aria-label={trans.__('Tags')}>
      <h2>{trans.__('Tags')}</h2>
      <dl className="jp-HyperPod-facts">
        {tags.map(({ key, value }) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
