"""Client of tribod: rigid and articulated contact dynamics with exact Coulomb friction.

    import tribo

    with tribo.connect("127.0.0.1:7410") as client:
        scene = client.load("hand.xml")
        with client.create_session(scene, worlds=16) as session:
            answer = session.step(10)
            print(answer.q, answer.certificates[0].residual)

SI units, radians, seconds; world frame right-handed with Z up; quaternions are (w, x, y, z).
Every answer carries certificates with its residuals and errors.
"""

from tribo import aio
from tribo._version import VERSION
from tribo.arrays import decode, encode, from_dlpack, to_dlpack
from tribo.client import Client, GraspJob, Session, StepStream, connect
from tribo.daemon import Daemon
from tribo.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TriboError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
)
from tribo.function import Function, FunctionAnswer, Kept, Program
from tribo.grasp_types import (
    ControlSource,
    GraspObject,
    GraspPose,
    GraspReason,
    GraspResult,
    GraspStage,
    GraspSummary,
    GraspTrajectory,
    GraspTrial,
    Hand,
    HandControl,
    HandInfo,
    KeepTrajectories,
    Perturbation,
    Protocol,
    Shake,
    StoredTrajectory,
    Verdict,
)
from tribo.grasping import Evaluation, evaluate, results_dataframe, sample_grasps
from tribo.names import BodyMotion, JointMotion, Names
from tribo.parameters import Parameters
from tribo.show import replay, show
from tribo.types import (
    Certificate,
    Contacts,
    Outcome,
    Overlap,
    Scene,
    SoftCertificate,
    SolveOptions,
    StepAnswer,
    StepOptions,
    Surface,
)

__version__ = VERSION

__all__ = [
    "AbortedError",
    "BodyMotion",
    "CancelledError",
    "Certificate",
    "Client",
    "Contacts",
    "ControlSource",
    "Daemon",
    "DataLossError",
    "DeadlineExceededError",
    "Evaluation",
    "FailedPreconditionError",
    "Function",
    "FunctionAnswer",
    "GraspJob",
    "GraspObject",
    "GraspPose",
    "GraspReason",
    "GraspResult",
    "GraspStage",
    "GraspSummary",
    "GraspTrajectory",
    "GraspTrial",
    "Hand",
    "HandControl",
    "HandInfo",
    "InternalError",
    "InvalidArgumentError",
    "JointMotion",
    "KeepTrajectories",
    "Names",
    "NotFoundError",
    "Outcome",
    "Overlap",
    "PermissionDeniedError",
    "Parameters",
    "Perturbation",
    "Kept",
    "Program",
    "Protocol",
    "ResourceExhaustedError",
    "Scene",
    "Session",
    "Shake",
    "SoftCertificate",
    "SolveOptions",
    "StepAnswer",
    "StepOptions",
    "StepStream",
    "StoredTrajectory",
    "Surface",
    "TriboError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "Verdict",
    "__version__",
    "aio",
    "connect",
    "decode",
    "encode",
    "evaluate",
    "from_dlpack",
    "replay",
    "results_dataframe",
    "sample_grasps",
    "show",
    "to_dlpack",
]
