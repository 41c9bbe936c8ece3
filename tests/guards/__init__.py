"""The guards that keep the promises: the code that is each one, the same code without it, and who must notice."""

from tests.guards.building import BUILDING, CLAIMS
from tests.guards.closing import CLOSING
from tests.guards.control import CONTROL
from tests.guards.deployments import DEPLOYMENTS
from tests.guards.direct_reads import DIRECT_READS
from tests.guards.doctor import DOCTOR
from tests.guards.effects import ONCE, VERIFICATION
from tests.guards.expiring import EXPIRING
from tests.guards.folders import FOLDERS
from tests.guards.forgetting import FORGETTING
from tests.guards.guard import Guard
from tests.guards.iceberg import ICEBERG
from tests.guards.in_place import IN_PLACE
from tests.guards.intake import ATTEMPTS, PLACES
from tests.guards.inventories import INVENTORIES
from tests.guards.kinesis import KINESIS
from tests.guards.measurements import MEASUREMENTS
from tests.guards.names import LINKS, NAMES
from tests.guards.one_pass import ONE_PASS
from tests.guards.partitions import PARTITIONS
from tests.guards.rebuilding import REBUILDING
from tests.guards.records import CREATE_ONLY, VERSIONS
from tests.guards.redriving import REDRIVING
from tests.guards.rotation import ROTATION
from tests.guards.shards import SHARDS
from tests.guards.streams import STREAMS
from tests.guards.table import TABLE
from tests.guards.topics import TOPICS

__all__ = ["GUARDS", "Guard"]

GUARDS = (
    *CREATE_ONLY,
    *VERSIONS,
    *VERIFICATION,
    *ONCE,
    *ATTEMPTS,
    *PLACES,
    *CLAIMS,
    *BUILDING,
    *CONTROL,
    *MEASUREMENTS,
    *ONE_PASS,
    *DOCTOR,
    *REDRIVING,
    *NAMES,
    *LINKS,
    *REBUILDING,
    *FOLDERS,
    *CLOSING,
    *EXPIRING,
    *FORGETTING,
    *DEPLOYMENTS,
    *INVENTORIES,
    *STREAMS,
    *SHARDS,
    *TABLE,
    *IN_PLACE,
    *DIRECT_READS,
    *ROTATION,
    *ICEBERG,
    *PARTITIONS,
    *TOPICS,
    *KINESIS,
)
