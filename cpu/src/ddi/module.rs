//! Modules and kernels.

use super::ddi;

ddi! {
    zeGetModuleProcAddrTable {
        0 zeModuleCreate;
        0 zeModuleDestroy;
        0 zeModuleDynamicLink;
        0 zeModuleGetNativeBinary;
        0 zeModuleGetGlobalPointer;
        0 zeModuleGetKernelNames;
        0 zeModuleGetProperties;
        0 zeModuleGetFunctionPointer;
        3 zeModuleInspectLinkageExt;
    }
    zeGetModuleBuildLogProcAddrTable {
        0 zeModuleBuildLogDestroy;
        0 zeModuleBuildLogGetString;
    }
    zeGetKernelProcAddrTable {
        0 zeKernelCreate;
        0 zeKernelDestroy;
        0 zeKernelSetCacheConfig;
        0 zeKernelSetGroupSize;
        0 zeKernelSuggestGroupSize;
        0 zeKernelSuggestMaxCooperativeGroupCount;
        0 zeKernelSetArgumentValue;
        0 zeKernelSetIndirectAccess;
        0 zeKernelGetIndirectAccess;
        0 zeKernelGetSourceAttributes;
        0 zeKernelGetProperties;
        0 zeKernelGetName;
    }
    zeGetKernelExpProcAddrTable {
        1 zeKernelSetGlobalOffsetExp;
        2 zeKernelSchedulingHintExp;
        11 zeKernelGetBinaryExp;
        14 zeKernelGetAllocationPropertiesExp;
    }
}
